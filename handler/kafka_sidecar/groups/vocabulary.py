"""The words that a group's machine and its shard have in common. A machine knows neither sockets nor clocks."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

ResponseFuture = Any  # stands for a waiting request (`tasks.Pending`); a machine only hands it back

UNKNOWN_MEMBER_ID: Final = ""
CONSUMER_PROTOCOL: Final = "consumer"


class Now(NamedTuple):
    clock: float  # seconds, for what is due
    wall: int  # milliseconds, for what is stored


class Reply(NamedTuple):
    response_future: ResponseFuture
    answer: Any
