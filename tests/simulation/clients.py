"""Clients, as their own code behaves: what they send again, in which order, and what they take for fatal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from kafka_sidecar.apis.state.refused_batches import RefusedBatches
from kafka_sidecar.partition.fold.producers import Verdict
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.read.fetch_cache import FetchedRun
from kafka_sidecar.partition.write.append import Append, AppendRequest
from kafka_sidecar.partition.write.log_validator import BatchRefused
from kafka_sidecar.partition.write.verified_appends import Verification
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import BatchHeader, read_produced
from tests.simulation.chance import Chance
from tests.simulation.conduct import delay
from tests.simulation.history import History, Violation
from tests.simulation.node import Node
from tests.simulation.plan import Bounds, Client
from tests.support.batches import batch
from tests.support.partitions import Outcome, Told
from tests.support.records import committed_in, records_in

# As many as Java's producer and librdkafka have in flight for a partition with idempotence.
IN_FLIGHT: Final = 5
REQUEST_SECONDS: Final = 5.0
# A request is answered so long after its time-out, at the latest.
LATE_SECONDS: Final = 2.0
# An end that is asked for is told within this, or that nobody knows it: a question waits for the one before, each takes
# up to 15 s.
END_SECONDS: Final = 35.0
RETRY_SECONDS: Final = 0.1
RETRIABLE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
FATAL_READS: Final = frozenset({ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.KAFKA_STORAGE_ERROR})
FETCH_BYTES: Final = 2_000
FIRST_PRODUCER: Final = 100
Answer = tuple[ErrorCode, int]
IDLE_SECONDS: Final = 20.0


@dataclass(slots=True)
class Sent:
    """A batch that its producer has to see acknowledged."""

    values: list[bytes]
    data: bytes
    sequence: int = -1


@dataclass(slots=True)
class Connection:
    """A sidecar's side of it, as far as it decides what is appended (see `a00_produce`). A client has one for all
    partitions.
    """

    life: int  # of the sidecar
    refused: RefusedBatches = field(default_factory=RefusedBatches)
    is_open: bool = True
    waiting: dict[object, float] = field(default_factory=dict)  # when each request came that has no answer yet

    def append(
        self, node: Node, data: bytes, now: float, verification: Verification | None, *, is_sent_away: bool = False
    ) -> asyncio.Future[Verdict]:
        outcome = Outcome()
        header, partition, name = read_produced(data), node.current(), node.topic.name
        behind = self.refused.before(name, header.producer_id, header.producer_epoch, header.base_sequence, now)
        append = Append.of(header, data, now + REQUEST_SECONDS, _Noted(outcome, self.refused, name, header), 0)
        if behind is not None:
            append.refuse(behind.error)
        elif is_sent_away:
            append.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif verification is None:
            partition.append(append)
        else:
            partition.append_to_transaction(append, verification)
        return outcome.result

    def answer(self, request: object, now: float) -> None:
        """Answers leave in the order of their requests."""
        del self.waiting[request]
        self.refused.answered(min(self.waiting.values(), default=None), now)


class _Noted(AppendRequest):
    """A request whose refusal is remembered by its connection."""

    def __init__(self, outcome: Outcome, refused: RefusedBatches, name: str, header: BatchHeader) -> None:
        self._outcome = outcome
        self._refused = refused
        self._name = name
        self._header = header

    def on_appended(self, batch_index: int, error: ErrorCode, base_offset: int) -> None:
        header, now = self._header, asyncio.get_running_loop().time()
        self._refused.note(self._name, header.producer_id, header.producer_epoch, header.base_sequence, error, now)
        self._outcome.on_appended(batch_index, error, base_offset)

    def on_refused(self, batch_index: int, refused: BatchRefused) -> None:
        self._outcome.on_refused(batch_index, refused)

    def on_log_append_time(self, batch_index: int, timestamp: int) -> None:
        self._outcome.on_log_append_time(batch_index, timestamp)


class Network:
    """How clients reach the sidecars."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        nodes: Sequence[Node],
        chance: Chance,
        bounds: Bounds,
        connections: dict[tuple[str, str], Connection],
    ) -> None:
        self.loop = loop
        self.nodes = nodes
        self._chance = chance
        self._bounds = bounds
        self.is_calm = False
        self.quiet_until = 0.0  # who has nothing on its way writes nothing until then
        self.still_until = 0.0  # producers with ids hear nothing until then, and send nothing
        self._connections = connections  # by client and sidecar: those of all partitions

    def connection(self, client: Client, node: Node) -> Connection:
        """The one that a client has to a sidecar; another where that was killed, or where an answer did not come."""
        key = client.name, node.name
        known = self._connections.get(key)
        if known is None or known.life != node.life:
            known = self._connections[key] = Connection(node.life)
        return known

    def end(self, client: Client, node: Node, connection: Connection) -> None:
        connection.is_open = False
        key = client.name, node.name
        if self._connections.get(key) is connection:
            del self._connections[key]

    def node_for(self, client: Client) -> Node:
        """The one that it takes for the leader."""
        draw = self._chance.of(f"{client.name}/node")
        return draw.choice(self.nodes) if draw.random() < client.wanders else self.nodes[0]

    @property
    def quiet_for(self) -> float:
        return max(0.0, self.quiet_until - self.loop.time())

    async def while_quiet(self) -> None:
        await asyncio.sleep(self.quiet_for)

    async def while_still(self) -> None:
        await asyncio.sleep(max(0.0, self.still_until - self.loop.time()))

    @property
    def new_epochs(self) -> float:
        return self._bounds.new_epochs

    @property
    def gives_up(self) -> float:
        return self._bounds.gives_up

    @property
    def written_before(self) -> int:
        return self._bounds.written_before

    async def way(self, client: Client) -> None:
        await asyncio.sleep(delay(self._chance.of(f"{client.name}/way"), self._bounds))

    def sends_away(self, client: Client) -> bool:
        """Whether a sidecar takes another one for the leader, which may be so again and again: fleets change."""
        return self._chance.of(f"{client.name}/redirects").random() < (0.0 if self.is_calm else self._bounds.sent_away)

    def loses_answer(self, client: Client) -> bool:
        return self._chance.of(f"{client.name}/answers").random() < (0.0 if self.is_calm else 0.03)


async def produce(
    network: Network, client: Client, window: Sequence[Sent], verification: Verification | None = None
) -> list[Answer | None]:
    """Send a producer's batches through one connection, in their order. None for those that have no answer."""
    node = network.node_for(client)
    await network.way(client)
    connection = network.connection(client, node)
    results: list[asyncio.Future[Verdict]] = []
    sent_at, request = network.loop.time(), object()
    connection.waiting[request] = sent_at
    for sent in window:
        if node.life != connection.life or not connection.is_open:
            break
        now, is_sent_away = network.loop.time(), network.sends_away(client)
        results.append(
            node.run(partial(connection.append, node, sent.data, now, verification, is_sent_away=is_sent_away))
        )
        if len(results) % 2:
            await network.way(client)
    if results:
        await asyncio.wait(results, timeout=REQUEST_SECONDS + LATE_SECONDS)
    if not all(result.done() for result in results) and node.owes_an_answer(connection.life, sent_at):
        raise Violation(f"{client.name}: {node.name} does not answer within {network.loop.time() - sent_at:.1f} s")
    await network.way(client)
    told: list[Answer | None] = [None] * len(window)
    is_lost = network.loses_answer(client)
    if is_lost or node.life != connection.life or not connection.is_open:
        network.end(client, node, connection)
        return told
    connection.answer(request, network.loop.time())
    for number, result in enumerate(results):
        if result.done():
            verdict = result.result()
            told[number] = (verdict.error, verdict.base_offset)
    if len(results) < len(window) or not all(result.done() for result in results):
        network.end(client, node, connection)  # request.timeout.ms
    return told


def without_answer(
    client: Client, window: Sequence[Sent], told: Sequence[Answer | None], history: History, generation: int
) -> list[Sent]:
    """Those that have to be sent again, of what was sent to a generation of the topic. What a producer may not be told
    is a violation.
    """
    kept: list[Sent] = []
    for sent, answer in zip(window, told, strict=True):
        if answer is not None and answer[0] is ErrorCode.NONE:
            history.acknowledge(sent.values, answer[1], generation)
            continue
        if answer is not None and answer[0] not in RETRIABLE and not kept and generation == history.generation:
            raise Violation(
                f"{client.name}: the oldest batch without an answer, {sent.values[0]!r}, is told {answer[0].name}"
            )
        kept.append(sent)
    return kept


async def idempotent_producer(network: Network, client: Client, number: int, history: History, chance: Chance) -> None:
    draw, patience = chance.of(client.name), chance.of(f"{client.name}/patience")
    producer_id, epoch, left, generation = FIRST_PRODUCER + number, 0, client.batches, history.generation
    sequence = written = network.written_before
    window: list[Sent] = []
    while left or window:
        if not window:
            await network.while_quiet()
        # Who deletes a topic ends its applications, and starts them again for the new one.
        begins_anew = generation != history.generation
        if begins_anew:
            generation, window = history.generation, []
        if begins_anew or (
            not window and written and network.new_epochs and draw.random() < network.new_epochs
        ):  # KIP-360
            epoch, sequence = epoch + 1, 0
            history.begun_in[producer_id, epoch] = generation
        while left and len(window) < IN_FLIGHT:
            values = [b"%d/%d" % (producer_id, written + place) for place in range(draw.randint(1, 3))]
            window.append(
                Sent(values, batch(*values, producer_id=producer_id, epoch=epoch, sequence=sequence), sequence)
            )
            sequence, written, left = sequence + len(values), written + len(values), left - 1
        told = await produce(network, client, window)
        if network.loop.time() < network.still_until:
            told = [None] * len(window)
            await network.while_still()
        history.counts["produce"] += len(window)
        window = without_answer(client, window, told, history, generation)
        if (
            window and patience.random() < network.gives_up
        ):  # delivery.timeout.ms: the application is told that these failed
            history.give_up([value for sent in window for value in sent.values])
            window, epoch, sequence = [], epoch + 1, 0
            history.begun_in[producer_id, epoch] = generation
        await asyncio.sleep(RETRY_SECONDS if window else draw.choice((0.0, 0.002, 0.3)))


async def plain_producer(network: Network, client: Client, history: History, chance: Chance) -> None:
    draw = chance.of(client.name)
    for number in range(client.batches):
        value = b"%s/%d" % (client.name.encode(), number)
        sent = Sent([value], batch(value))
        window = [sent]
        while window:
            generation = history.generation
            told = await produce(network, client, window)
            history.counts["produce"] += 1
            window = without_answer(client, window, told, history, generation)
            if window:
                await asyncio.sleep(RETRY_SECONDS)
        await asyncio.sleep(draw.choice((0.0, 0.01, 0.5)))


async def forgetful_producer(network: Network, client: Client, history: History, chance: Chance) -> None:
    """acks=0: it hears of nothing, and sends nothing twice."""
    draw = chance.of(client.name)
    for number in range(client.batches):
        value = b"%s/%d" % (client.name.encode(), number)
        node = network.node_for(client)
        await network.way(client)
        connection = network.connection(client, node)
        node.run(partial(connection.append, node, batch(value), network.loop.time(), None))
        history.counts["produce"] += 1
        await asyncio.sleep(draw.choice((0.0, 0.01, 0.5)))


class Isolation(Protocol):
    """Which records a consumer gives to its application."""

    def end(self, partition: Partition) -> int:
        """Nothing is given from there on."""
        ...

    def fetch(self, partition: Partition, offset: int, since: float) -> FetchedRun | None: ...

    def values(self, partition: Partition, offset: int, run: FetchedRun) -> dict[int, bytes | None]:
        """By offset. To be asked together with `fetch`."""
        ...

    def check_end(self, partition: Partition, history: History, by: str) -> None: ...
    def see(self, history: History, offset: int, value: bytes | None, by: str) -> None: ...


class ReadUncommitted(Isolation):
    def end(self, partition: Partition) -> int:
        return partition.end_offset

    def fetch(self, partition: Partition, offset: int, since: float) -> FetchedRun | None:
        return partition.read(offset, FETCH_BYTES, True, since)

    def values(self, partition: Partition, offset: int, run: FetchedRun) -> dict[int, bytes | None]:
        return dict(records_in(run.parts))

    def check_end(self, partition: Partition, history: History, by: str) -> None:
        """What others have acknowledged may not have come here yet."""

    def see(self, history: History, offset: int, value: bytes | None, by: str) -> None:
        history.see(offset, value, by)


class ReadCommitted(Isolation):
    def end(self, partition: Partition) -> int:
        return partition.last_stable_offset

    def fetch(self, partition: Partition, offset: int, since: float) -> FetchedRun | None:
        return partition.read_committed(offset, FETCH_BYTES, True, since)

    def values(self, partition: Partition, offset: int, run: FetchedRun) -> dict[int, bytes | None]:
        return dict(committed_in(run.parts, partition.transactions.aborted_between(offset, run.next_offset)))

    def check_end(self, partition: Partition, history: History, by: str) -> None:
        history.check_stable(partition.last_stable_offset, partition.log_start, by)

    def see(self, history: History, offset: int, value: bytes | None, by: str) -> None:
        history.see_committed(offset, value, by)


class Consumer:
    """It reads on, through any sidecar, and now and then from an older offset. What it finds must be the same for
    ever.
    """

    def __init__(
        self, network: Network, client: Client, history: History, chance: Chance, isolation: Isolation
    ) -> None:
        self._network = network
        self._client = client
        self._history = history
        self._draw = chance.of(client.name)
        self._isolation = isolation
        self._generation = history.generation
        self.offset = 0

    async def run(self) -> None:
        while True:
            node = self._draw.choice(self._network.nodes)
            if self._draw.random() < 0.1:
                self.offset = self._draw.randint(0, self.offset)
            await self._network.way(self._client)
            if self._draw.random() < 0.3:
                await self._ask_end(node)
            await self.read_through(node, 1.0)
            # While nobody writes it looks now and then.
            await asyncio.sleep(
                self._draw.choice((0.001, 0.01, 0.2)) if self._network.quiet_for < IDLE_SECONDS else IDLE_SECONDS
            )

    async def _ask_end(self, node: Node) -> None:
        """ListOffsets: what was acknowledged to anybody before it was asked is before the end."""
        partition = node.current()
        opened_in = node.opened_in
        opened = node.begin(partition.opened())
        if (
            not await ends(opened, REQUEST_SECONDS)
            or opened.result() is not ErrorCode.NONE
            or not self._is_of_now(opened_in)
        ):
            return
        acknowledged, generation = self._history.end, self._history.generation
        life, asked_at, written = node.life, self._network.loop.time(), node.written_to
        asked = node.begin(partition.confirmed_end())
        is_answered = await ends(asked, END_SECONDS)
        if self._history.generation != generation:
            return
        if not asked.done() and node.owes_an_answer(life, asked_at):
            raise Violation(f"{node.name} does not say within {END_SECONDS:.0f} s where the log ends")
        if is_answered and asked.result() < acknowledged:
            raise Violation(
                f"{node.name} says that the log ends at {asked.result()}, and {acknowledged} were acknowledged before"
            )
        if is_answered and asked.result() > max(written, node.written_to):
            raise Violation(
                f"{node.name} says that the log ends at {asked.result()}, and {node.written_to} were written"
            )

    def _is_of_now(self, opened_in: int) -> bool:
        """Whether what a sidecar has opened is the topic that has the name now. It may not know yet that there is
        another.
        """
        if self._generation != self._history.generation:
            self._generation, self.offset = self._history.generation, 0
        return opened_in == self._generation

    async def read_through(self, node: Node, seconds: float) -> None:
        partition, life, opened_in = node.current(), node.life, node.opened_in
        opened = node.begin(partition.opened())
        if not await ends(opened, seconds) or opened.result() is not ErrorCode.NONE:
            return
        node.run(lambda: partition.refresh_log_start_if_stale(self.offset))  # as Fetch does
        isolation = self._isolation
        begun, until = self._network.loop.time(), self._network.loop.time() + seconds
        while self._network.loop.time() < until and node.life == life and self._is_of_now(opened_in):
            run = node.run(lambda: isolation.fetch(partition, self.offset, begun))
            isolation.check_end(partition, self._history, f"{self._client.name} through {node.name}")
            if run is None or not (run.parts or run.error is not ErrorCode.NONE):
                if run is not None and self.offset >= isolation.end(partition):
                    return
                await _told(node, partition)
                continue
            if run.error is not ErrorCode.NONE:
                self._take_error(run.error, partition)
                return
            values = isolation.values(partition, self.offset, run)
            await self._network.way(self._client)
            if (
                node.life == life
                and not self._network.loses_answer(self._client)
                and self._generation == self._history.generation
            ):
                self._take(run, values, node)

    def _take_error(self, error: ErrorCode, partition: Partition) -> None:
        if error is ErrorCode.OFFSET_OUT_OF_RANGE and self.offset < partition.log_start:
            self.offset = partition.log_start  # auto.offset.reset=earliest
        elif error is ErrorCode.CORRUPT_MESSAGE:
            self._history.corrupt[self.offset] = self._client.name
            self.offset += 1  # as its application asks for
        elif error in FATAL_READS:
            raise Violation(f"{self._client.name} reads at {self.offset} and is told {error.name}")

    def _take(self, run: FetchedRun, values: Mapping[int, bytes | None], node: Node) -> None:
        self._history.counts["fetch"] += 1
        for offset in range(self.offset, run.next_offset):
            self._isolation.see(self._history, offset, values.get(offset), f"{self._client.name} through {node.name}")
        self.offset = max(self.offset, run.next_offset)


async def ends(task: asyncio.Task[Any], seconds: float) -> bool:
    await asyncio.wait({task}, timeout=seconds)
    return task.done() and not task.cancelled() and task.exception() is None


async def _told(node: Node, partition: Partition) -> None:
    changed = asyncio.Event()
    node.run(lambda: partition.watch(Told(changed)))
    waiting = asyncio.ensure_future(changed.wait())
    await asyncio.wait({waiting}, timeout=0.5)
    waiting.cancel()
