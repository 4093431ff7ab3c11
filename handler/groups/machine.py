"""What a group's machine is to the shard that runs it. It knows neither sockets nor clocks."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Token = Any  # whoever waits for an answer; a machine only hands it back

UNKNOWN_MEMBER_ID: Final = ""
CONSUMER_PROTOCOL: Final = "consumer"


class Now(NamedTuple):
    clock: float  # seconds, for what is due
    wall: int  # milliseconds, for what is stored


class Reply(NamedTuple):
    to: Token
    answer: Any
