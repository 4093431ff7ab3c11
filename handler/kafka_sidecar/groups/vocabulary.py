"""The words that a group's machine and its shard have in common. A machine knows neither sockets nor clocks."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

ResponseFuture = Any  # stands for a waiting request (`tasks.Pending`); a machine only hands it back

UNKNOWN_MEMBER_ID: Final = ""
CONSUMER_PROTOCOL: Final = "consumer"


class Now(NamedTuple):
    clock: float  # seconds, for what is due
    wall: int  # milliseconds, for what is stored


class Committer(NamedTuple):
    """A member that commits offsets, as it names itself; without members a group commits on its own."""

    member_id: str
    instance_id: str | None
    generation: int  # or the epoch of a member of a consumer group
    knows_epochs: bool = True  # the version of the request has a member epoch where there was a generation

    @property
    def is_member(self) -> bool:
        return self.generation >= 0 or bool(self.member_id) or self.instance_id is not None


class Reply(NamedTuple):
    response_future: ResponseFuture
    answer: Any
