"""The words that a group's machine and its shard have in common. A machine knows neither sockets nor clocks."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

ResponseFuture = Any  # handle of a waiting request (`loop.waiting.Pending`), which a state machine only passes back

UNKNOWN_MEMBER_ID: Final = ""
CONSUMER_PROTOCOL: Final = "consumer"


class Now(NamedTuple):
    clock: float  # time of the event loop in seconds, for deadlines
    wall: int  # wall-clock time in milliseconds, for stored records


class Committer(NamedTuple):
    """A member that commits offsets, as it names itself; without members a group commits on its own."""

    member_id: str
    instance_id: str | None
    generation: int  # the generation, or the member epoch in a consumer group
    # The request may carry a member epoch as its generation (OffsetCommit version 9 and later).
    knows_epochs: bool = True

    @property
    def is_member(self) -> bool:
        return self.generation >= 0 or bool(self.member_id) or self.instance_id is not None


class Reply(NamedTuple):
    response_future: ResponseFuture
    answer: Any
