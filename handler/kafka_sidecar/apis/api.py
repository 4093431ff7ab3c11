"""An API as the server sees it: a request, a range of versions, a handler.

A handler gets the services, the call and the request, and returns the response; None where the protocol has none. Most
are coroutines. They are begun in the order of a connection's requests, so what a coroutine does before its first pause
is ordered too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from kafka_sidecar.apis.needs import Needs
from kafka_sidecar.apis.state.answer_share import AnswerShare
from kafka_sidecar.apis.state.fetch_session_cache import FetchSessionCache
from kafka_sidecar.apis.state.member_forms import RememberedForms
from kafka_sidecar.apis.state.promise import Promise
from kafka_sidecar.apis.state.redirects import FetchRedirects, ProduceRedirects
from kafka_sidecar.apis.state.refused_batches import RefusedBatches
from kafka_sidecar.apis.state.resolved_partitions import ResolvedPartitions
from kafka_sidecar.apis.state.waits_elsewhere import WaitsElsewhere
from kafka_sidecar.config import Config, KafkaConfig
from kafka_sidecar.fleet.fleet import Fleet, View
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.peers import Peers
from kafka_sidecar.groups.service import GroupRuntime
from kafka_sidecar.internal_topics.log_starts import LogStarts
from kafka_sidecar.loop.ids import NewProducerId, new_producer_id
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.model.sidecar import Endpoint
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.pulsar.errors import TopicMissing
from kafka_sidecar.subscriptions.mirror import Mirror
from kafka_sidecar.topics.catalog import Catalog
from kafka_sidecar.topics.config_store import ConfigStore
from kafka_sidecar.topics.names import TopicName, TopicNames
from kafka_sidecar.transactions.service import TransactionRuntime
from kafka_sidecar.wire.message import Message

Req = TypeVar("Req", bound=Message)

# Or the bytes of a response, header and body, that another sidecar has given.
Response = Message | bytes | None
Result = Response | Promise[Response] | Awaitable[Response]


class Principal(NamedTuple):
    """On whose behalf a request is made, as Kafka's KafkaPrincipal."""

    kind: str
    name: str


# While so many partitions are being opened, no others are of topics that nobody has described here: a request may name
# any number of them.
MOST_UNKNOWN: Final = 5_000
ANONYMOUS: Final = Principal("User", "ANONYMOUS")


class Client(Protocol):
    """The connection a call came through."""

    services: Services  # its principal's
    peer: str
    local_address: Endpoint
    is_external: bool  # came to the external listener
    refused: RefusedBatches
    software: str  # what the client says it is (KIP-511), "" if it says nothing
    last_metadata: View | None  # the fleet as it was named then, if the client keeps to it

    @property
    def waiting_since(self) -> float | None: ...
    @property
    def round_trip(self) -> float: ...
    def abort(self) -> None: ...


class Call(NamedTuple):
    """How a request came."""

    version: int
    client_id: str | None
    client: Client
    frame: memoryview  # the request as it came, so that it can be forwarded
    body_at: int  # in the frame
    forwarded: bool = False  # by another sidecar, which took this one for the coordinator
    late_at: float | None = None  # on the loop's clock: when a question is to be answered in any case (see `late`)
    by_0_2: bool = False  # forwarded by a sidecar of that release: its short names may mean topics of another namespace
    loaded_by: float | None = None  # on the loop's clock: until then it may wait while its coordinator loads


@dataclass(frozen=True, slots=True)
class Services:
    """All that handlers work with, on behalf of one principal. They reach Pulsar in no other way.

    A principal reaches what is in its services. That another has opened a partition decides nothing for it.
    """

    config: KafkaConfig
    catalog: Catalog
    configs: ConfigStore
    partitions: PartitionTable
    sessions: FetchSessionCache
    groups: GroupRuntime
    transactions: TransactionRuntime
    peers: Peers
    fleet: Fleet
    mirror: Mirror
    log_starts: LogStarts
    in_turn: KeyedLock[tuple[Client, str]]  # requests of a client about a group
    answers: AnswerShare
    clock: Callable[[], float]
    wall_clock: Callable[[], int]  # milliseconds
    new_producer_id: NewProducerId = new_producer_id
    principal: Principal = ANONYMOUS
    settings: Config = field(default_factory=Config)  # the whole configuration: DescribeConfigs of a node reads it
    member_forms: RememberedForms = field(default_factory=RememberedForms)
    produce_partitions: ResolvedPartitions = field(default_factory=ResolvedPartitions)
    fetch_partitions: ResolvedPartitions = field(default_factory=ResolvedPartitions)
    produce_redirects: ProduceRedirects = field(default_factory=ProduceRedirects)
    fetch_redirects: FetchRedirects = field(default_factory=FetchRedirects)
    waits_elsewhere: WaitsElsewhere = field(default_factory=WaitsElsewhere)

    @property
    def names(self) -> TopicNames:
        return self.catalog.names

    @property
    def names_in_full(self) -> bool:
        """Whether members of groups name topics in full to each other (see `routing.member_words`)."""
        return self.groups.leaders.are_shared

    @property
    def generation(self) -> int:
        """Changes when words of requests may mean another topic than before, or another member may lead it."""
        return self.catalog.forgotten + self.fleet.version + self.fleet.awakenings

    def partition(self, name: TopicName, index: int) -> Partition:
        """The partition, or TopicMissing where it is known not to be there."""
        if not self.catalog.may_have(name, index):
            self.catalog.look_again_soon(name)
            raise TopicMissing(f"{name.pulsar} has no partition {index}")
        partition = name.partition(index)
        if partition not in self.partitions:
            self.catalog.look_soon(name)  # a listing may show it as it was a while ago
            if self.partitions.opening >= MOST_UNKNOWN and not self.catalog.remembers(name, index):
                raise TopicMissing(f"whether {name.pulsar} has a partition {index} is not known yet")
        return self.partitions.get(partition)

    def leader(self, name: TopicName, index: int, rack: str = "") -> Member | None:
        """The member that leads a partition, or serves reads of it in a rack (KIP-392); None where the topic is not
        known here.
        """
        if self.fleet.is_alone:
            return self.fleet.own
        topic = self.catalog.remembered(name)
        if topic is None or not 0 <= index < topic.partitions:
            return None
        return self.fleet.view.leadership.replica_in(rack, name.pulsar, topic.partitions, index)

    def sends_away(self, name: TopicName, now: float) -> bool:
        """Whether clients are sent to the leaders of a topic: all sidecars know the members by now, and how many
        partitions there are.
        """
        return self.fleet.sends_away(now) and (self.fleet.is_leaving or not self.catalog.has_just_grown(name))

    def node_address(self, client: Client) -> Endpoint:
        """Where clients of a listener find this node: as configured, else where this one has found it."""
        configured = self.config.external_address if client.is_external else self.config.advertised_address
        return configured or client.local_address


@dataclass(frozen=True, slots=True)
class Api(Generic[Req]):
    request: type[Req]
    response: type[Message]
    lowest: int
    highest: int
    handle: Callable[[Services, Call, Req], Result]
    needs: Needs
    # A question or a wait: nothing is left of it when its client goes. A member that joins stays until its session
    # ends, only its answer is for nobody. All that changes something runs to its end.
    ends_with_client: bool = False
    # Sidecars pass its requests on to each other: to the coordinator of the group or transactional id.
    is_passed_on: bool = False
    # The lowest version that ApiVersions tells, where that is not the lowest that is served.
    advertised_lowest: int | None = None
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.request.__name__.removesuffix("Request"))

    @property
    def key(self) -> int:
        return self.request.KEY


AnyApi = Api[Any]


class BegunRequest(Protocol):
    """A request whose handler is at work: its answer, or a promise of it, and how that is encoded."""

    @property
    def api(self) -> str: ...
    @property
    def answer(self) -> Result: ...
    @property
    def ends_with_client(self) -> bool: ...
    def encode(self, answer: Any) -> Sequence[bytes | bytearray]: ...
    def took(self, seconds: float) -> None: ...
