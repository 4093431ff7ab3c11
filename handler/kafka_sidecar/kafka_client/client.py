"""A client of a Kafka cluster for any request: typed messages over aiokafka's connections."""

from __future__ import annotations

import asyncio
import io
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, NamedTuple, TypeVar

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError, KafkaError, StaleMetadata

from kafka_sidecar.errors import ConfigError, SidecarError
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.headers import request_header
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_sidecar.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafka_sidecar.wire.messages.create_partitions import CreatePartitionsRequest
from kafka_sidecar.wire.messages.create_topics import CreateTopicsRequest
from kafka_sidecar.wire.messages.describe_configs import DescribeConfigsRequest
from kafka_sidecar.wire.messages.describe_groups import DescribeGroupsRequest
from kafka_sidecar.wire.messages.end_txn import EndTxnRequest
from kafka_sidecar.wire.messages.fetch import FetchRequest
from kafka_sidecar.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_sidecar.wire.messages.list_groups import ListGroupsRequest
from kafka_sidecar.wire.messages.list_offsets import ListOffsetsRequest
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka_sidecar.wire.messages.offset_commit import OffsetCommitRequest
from kafka_sidecar.wire.messages.offset_fetch import OffsetFetchRequest
from kafka_sidecar.wire.messages.produce import ProduceRequest
from kafka_sidecar.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafka_sidecar.wire.varint import skip_tagged_fields

R = TypeVar("R", bound=Message)
T = TypeVar("T")

_CORRELATION: Final = struct.Struct(">i")
# The newest version used of each request, by API key. Transaction requests stay below the versions of KIP-890's second
# part: up to EndTxn v4 a producer keeps its epoch from one transaction to the next.
NEWEST: Final[Mapping[int, int]] = {
    message.KEY: version
    for message, version in (
        (ProduceRequest, 9),
        (FetchRequest, 11),
        (ListOffsetsRequest, 7),
        (MetadataRequest, 12),
        (OffsetCommitRequest, 8),
        (OffsetFetchRequest, 7),
        (FindCoordinatorRequest, 3),
        (DescribeGroupsRequest, 4),
        (ListGroupsRequest, 5),
        (CreateTopicsRequest, 5),
        (InitProducerIdRequest, 4),
        (AddPartitionsToTxnRequest, 3),
        (AddOffsetsToTxnRequest, 3),
        (EndTxnRequest, 3),
        (TxnOffsetCommitRequest, 3),
        (DescribeConfigsRequest, 4),
        (CreatePartitionsRequest, 2),
    )
}
# The oldest version used of each request, by API key, where a cluster may support older ones: the client needs what
# these versions introduced.
OLDEST: Final[Mapping[int, int]] = {
    message.KEY: version
    for message, version in (
        (ProduceRequest, 3),
        (FetchRequest, 4),
        (ListOffsetsRequest, 1),
        (MetadataRequest, 1),
        (OffsetFetchRequest, 2),
        (FindCoordinatorRequest, 1),
        (DescribeConfigsRequest, 1),
    )
}
GROUP: Final = 0
TRANSACTION: Final = 1
REQUEST_SECONDS: Final = 40.0
NOT_READY_SECONDS: Final = 0.02
# Errors after which the same request may succeed when it is retried a little later, perhaps at another broker.
RETRIABLE: Final = frozenset(
    (
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # a topic created a moment ago may not be known to every broker yet
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    )
)


# Errors that a retry of the same request does not resolve, but a new producer or a new lookup of the log's offsets
# does.
BEGIN_AGAIN: Final = frozenset(
    (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    )
)
# The right coordinator answered that it is not ready, and has changed nothing: the request can be retried at the same
# node.
NOT_READY: Final = frozenset((ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))


class Refused(SidecarError):
    """A broker has answered with an error."""

    def __init__(self, code: ErrorCode, what: str, text: str | None = None) -> None:
        super().__init__(f"{what}: {text or code.name}")
        self.code = code

    @property
    def is_retriable(self) -> bool:
        return self.code in RETRIABLE

    @property
    def is_mended_by_beginning_again(self) -> bool:
        return self.code in RETRIABLE or self.code in BEGIN_AGAIN


# Exceptions after which a retry may succeed. aiokafka passes on OSError and TimeoutError of its connections unwrapped.
TRANSIENT: Final = (KafkaError, OSError, TimeoutError)
PATIENCE_SECONDS: Final = 60.0  # long enough for a cluster restart, or for the election of a partition's leader


def check(code: ErrorCode, what: str, text: str | None = None) -> None:
    if code is not ErrorCode.NONE:
        raise Refused(code, what, text)


class _RequestHeader(NamedTuple):
    written: bytes

    def encode(self) -> bytes:
        return self.written


class _ResponseHeader(NamedTuple):
    correlation_id: int


class _Request(Generic[R]):
    """What aiokafka's connection sends and reads: a message of ours in the newest version that both sides know."""

    def __init__(self, request: Message, response: type[R]) -> None:
        self.API_KEY = request.KEY
        self._request = request
        self._response = response
        self._version = 0

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> _Request[R]:
        oldest, newest = versions.get(self.API_KEY, (0, -1))
        self._version = min(newest, NEWEST[self.API_KEY])
        if self._version < max(oldest, OLDEST.get(self.API_KEY, 0)):
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"the cluster does not take {type(self._request).__name__}")
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> _RequestHeader:
        return _RequestHeader(request_header(type(self._request), self._version, correlation_id, client_id))

    def encode(self) -> bytes:
        out = bytearray()
        return b"".join(self._request.write_pieces(self._version, out))

    def parse_response_header(self, frame: io.BytesIO) -> _ResponseHeader:
        return _ResponseHeader(_CORRELATION.unpack(frame.read(_CORRELATION.size))[0])

    @property
    def RESPONSE_TYPE(self) -> _Request[R]:
        return self

    def decode(self, frame: io.BytesIO) -> R:
        body = frame.getbuffer()
        at = _CORRELATION.size
        if self._response.is_flexible(self._version):
            at = skip_tagged_fields(body, at)
        return self._response.read(self._version, body[at:], max_elements=len(body))


class KafkaClient:
    def __init__(self, client: AIOKafkaClient) -> None:
        self._client = client

    @property
    def any_node(self) -> int:
        return int(self._client.get_random_node())

    async def ask(self, node: int, request: Message, response: type[R]) -> R:
        """Raises what TRANSIENT has. Errors in the answer are the caller's."""
        found: R = await self._client.send(node, _Request(request, response))
        return found

    async def ask_any(self, request: Message, response: type[R]) -> R:
        return await self.ask(self.any_node, request, response)

    async def ask_controller(self, request: Message, response: type[R]) -> R:
        metadata = await self.ask_any(MetadataRequest(topics=[]), MetadataResponse)
        return await self.ask(metadata.controller_id, request, response)

    async def metadata(self, topics: list[str] | None) -> MetadataResponse:
        """None for all topics."""
        wanted = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
        return await self.ask_any(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), MetadataResponse)

    async def nodes(self) -> list[int]:
        found = await self.ask_any(MetadataRequest(topics=[]), MetadataResponse)
        for one in found.brokers:
            await self.know(one.node_id)
        return [one.node_id for one in found.brokers]

    async def leader(self, topic: str, partition: int) -> int:
        (found,) = (await self.metadata([topic])).topics
        check(found.error_code, f"topic {topic}")
        for one in found.partitions:
            if one.partition_index == partition:
                if one.leader_id < 0:
                    raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition} of topic {topic}")
                await self.know(one.leader_id)
                return one.leader_id
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} of topic {topic}")

    async def coordinator(self, key: str, kind: int) -> int:
        found = await self.ask_any(FindCoordinatorRequest(key=key, key_type=kind), FindCoordinatorResponse)
        check(found.error_code, f"the coordinator of {key}", found.error_message)
        await self.know(found.node_id)
        return found.node_id

    async def know(self, node: int) -> None:
        """aiokafka connects to nodes of its own metadata alone."""
        if self._client.cluster.broker_metadata(node) is None:
            await self._client.force_metadata_update()
        if self._client.cluster.broker_metadata(node) is None:
            raise StaleMetadata(f"node {node} is not in the cluster's metadata")


class CanNotConnect(KafkaConnectionError):
    """aiokafka has logged why."""

    def __init__(self, cluster: Cluster) -> None:
        secrets = (
            "" if cluster.security_protocol == "PLAINTEXT" else ", and are the certificates and the password right"
        )
        self._text = (
            f"{cluster.bootstrap} can't be connected to: is the address right, does that port speak "
            f"{cluster.security_protocol}{secrets}?"
        )

    def __str__(self) -> str:
        return self._text


def check_reachable(*clusters: Cluster) -> None:
    """Before Spark starts: a wrong address is said at once. Later a cluster may be away for a while."""

    async def connect() -> None:
        for cluster in clusters:
            async with connected(cluster, "kafka-sidecar"):
                pass

    try:
        asyncio.run(connect())
    except CanNotConnect as error:
        raise ConfigError(str(error)) from error


@asynccontextmanager
async def connected(cluster: Cluster, client_id: str) -> AsyncIterator[KafkaClient]:
    options: dict[str, Any] = cluster.options()
    client = AIOKafkaClient(client_id=client_id, request_timeout_ms=round(REQUEST_SECONDS * 1_000), **options)
    try:
        try:
            await client.bootstrap()
        except KafkaConnectionError as error:
            raise CanNotConnect(cluster) from error
        yield KafkaClient(client)
    finally:
        # The wait is limited: aiokafka's connection tasks may hang if a broker has become unreachable.
        try:
            await asyncio.wait_for(client.close(), 5)
        except TRANSIENT:
            pass


async def asked(
    cluster: Cluster, client_id: str, what: Callable[[KafkaClient], Awaitable[T]], seconds: float = PATIENCE_SECONDS
) -> T:
    """Ask again, by another connection, for so long as another try may succeed: the cluster may be restarted
    meanwhile.
    """

    async def once() -> T:
        async with connected(cluster, client_id) as kafka:
            return await what(kafka)

    return await until_it_succeeds(once, seconds)


async def until_ready(what: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Ask the same node again while it says that it is not ready. After anything else its state is not known."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await what()
        except Refused as error:
            if error.code not in NOT_READY or asyncio.get_running_loop().time() > until:
                raise
        await asyncio.sleep(NOT_READY_SECONDS)


async def until_it_succeeds(what: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Ask again, for so long, while another try may succeed: for questions alone."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    pause = 0.05
    while True:
        try:
            return await what()
        except (Refused, *TRANSIENT) as error:
            if loop.time() + pause > until or (isinstance(error, Refused) and not error.is_retriable):
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, 1.0)
