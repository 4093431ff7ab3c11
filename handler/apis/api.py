"""What an API is to the server: a key, a range of versions, a handler.

A handler gets the services and the call and returns the answer as a dict in the newest version's
words (see `wire.schema`), None where the protocol has no answer, a promise, or an awaitable. It is
called in the order of a connection's requests, so what it does before it returns is ordered too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from handler.apis.answer_share import AnswerShare
from handler.apis.fetch_sessions import FetchSessions
from handler.apis.order import Order
from handler.apis.promise import Promise
from handler.config import KafkaConfig
from handler.fleet.peers import Peers
from handler.groups.service import GroupService
from handler.mirror.mirror import Mirror
from handler.partition.partition import Partition
from handler.partition.table import PartitionTable
from handler.pulsar.errors import TopicMissing
from handler.topics.catalog import Catalog
from handler.topics.names import TopicName

Answer = dict[str, Any]


class SizedAnswer(Answer):
    """An answer whose bytes count (see `answer_share`) until they are written."""

    size = 0


# Or the bytes of an answer, header and body, that another sidecar has given.
Told = Answer | bytes | None
Result = Told | Promise[Told] | Awaitable[Told]


class Client(Protocol):
    """The connection a call came through."""

    peer: str
    local_address: tuple[str, int]

    def abort(self) -> None: ...


class Call(NamedTuple):
    key: int
    version: int
    request: Any  # kio's dataclass of this version, or what the API's own reader makes of it
    client_id: str | None
    client: Client
    frame: memoryview  # as it came, for whoever has to pass it on
    forwarded: bool = False  # by another sidecar, which took this one for the coordinator
    late_at: float | None = None  # on the loop's clock: when a question is to be answered in any case (see `late`)


@dataclass(frozen=True, slots=True)
class Services:
    """All that handlers work with."""

    config: KafkaConfig
    catalog: Catalog
    partitions: PartitionTable
    sessions: FetchSessions
    groups: GroupService
    peers: Peers
    mirror: Mirror
    order: Order
    answers: AnswerShare
    clock: Callable[[], float]
    wall_clock: Callable[[], int]  # milliseconds

    def partition(self, name: TopicName, index: int) -> Partition:
        """The partition, or TopicMissing where it is known not to be there."""
        if not self.catalog.may_have(name, index):
            raise TopicMissing(f"{name.pulsar} has no partition {index}")
        return self.partitions.get(name.partition(index))

    def node_address(self, client: Client) -> tuple[str, int]:
        """Where clients find this node: as configured, else where this one has found it."""
        return self.config.advertised_address or client.local_address


Handler = Callable[[Services, Call], Result]


@dataclass(frozen=True, slots=True)
class Api:
    key: int
    name: str
    lowest: int
    highest: int
    handle: Handler
    # A question or a wait: nothing is left of it when its client goes. A member that joins stays until its session
    # ends, only its answer is for nobody. All that changes something runs to its end.
    ends_with_client: bool = False
    # The lowest version that ApiVersions tells, where that is not the lowest that is served.
    advertised_lowest: int | None = None
    # For an API that is asked so often that its bytes are read and written by hand.
    read: Callable[[memoryview, int], Any] | None = None
    writer: Callable[[int], Callable[[bytearray, Answer], None]] | None = None
