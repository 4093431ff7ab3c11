"""The coordinator over its log: what is prepared is completed by whoever leads, and nobody is told of what is not
stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from kafka_sidecar.config import TransactionsConfig
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.loop.ids import new_producer_id
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.transactions import coordinator as module
from kafka_sidecar.transactions.coordinator import Coordinator
from kafka_sidecar.transactions.machine import NOBODY, Producer
from kafka_sidecar.transactions.markers import GONE_SECONDS, Logs, Markers
from kafka_sidecar.transactions.metadata import TopicPartition, TransactionMetadata, TransactionState
from kafka_sidecar.transactions.records import TransactionRecord, TransactionRecords
from kafka_sidecar.wire.control_records import read_marker
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import read_header
from tests.support.memory_term_log import MemoryOffsets, MemoryTermLog
from tests.support.virtual_time import in_virtual_time

NONE = ErrorCode.NONE
A, B = ("t", 0), ("t", 1)


@dataclass
class Partitions(Logs):
    """Who takes markers: partition, number, epoch, and whether it is a commit."""

    written: list[tuple[TopicPartition, int, int, bool]] = field(default_factory=list)
    fail: list[ErrorCode | Exception] = field(default_factory=list)  # so many first ones
    held: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.held.set()

    async def append_marker(
        self, partition: TopicPartition, marker: bytes, transaction: int, seconds: float
    ) -> ErrorCode:
        await self.held.wait()
        if self.fail:
            failure = self.fail.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return failure
        found = read_marker(marker)
        assert found is not None
        self.written.append((partition, transaction, read_header(marker).producer_epoch, found.committed))
        return NONE


class Sidecar:
    def __init__(self, log: MemoryOffsets, partitions: Partitions) -> None:
        loop = asyncio.get_running_loop()
        self.now = 1_000_000
        self.coordinator = Coordinator(
            TransactionsConfig(), Markers(partitions), loop.time, lambda: self.now, loop.time, new_producer_id
        )
        self.coordinator.begin([("__transaction_state-0", log.open)])
        (self.shard,) = self.coordinator.shards

    async def lead(self) -> None:
        self.shard.term.elect()
        async with asyncio.timeout(2):
            while self.shard.term.phase is not Phase.LEADING:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def init(self, timeout_ms: int = 60_000, expected: Producer = NOBODY) -> Producer:
        found = await self.coordinator.init_producer_id("x", timeout_ms, expected)
        assert found.error is NONE, found.error
        return Producer(found.producer_id, found.epoch)

    async def state(self, wanted: TransactionState) -> None:
        async with asyncio.timeout(2):
            while self.shard.transactions["x"].state is not wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


@pytest.fixture
def log() -> MemoryOffsets:
    return MemoryOffsets(codec=TransactionRecords())


@pytest.fixture
def partitions() -> Partitions:
    return Partitions()


@pytest_asyncio.fixture
async def sidecar(
    log: MemoryOffsets, partitions: Partitions, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sidecar]:
    monkeypatch.setattr(module, "COMPLETION_SECONDS", 0.05)
    monkeypatch.setattr(module, "ABORTED_SECONDS", 0.05)
    sidecar = Sidecar(log, partitions)
    await sidecar.lead()
    yield sidecar
    sidecar.shard.term.depose("end")


async def loading(log: MemoryOffsets, partitions: Partitions) -> Sidecar:
    """It loads until `log.hold_reads` is set."""
    sidecar = Sidecar(log, partitions)
    log.hold_reads.clear()
    sidecar.shard.term.elect()
    while sidecar.shard.term.phase is not Phase.LOADING:  # noqa: ASYNC110
        await asyncio.sleep(0)
    return sidecar


async def test_a_producer_that_begins_waits_while_its_coordinator_loads(
    log: MemoryOffsets, partitions: Partitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOADING_SECONDS", 0.05)
    sidecar = await loading(log, partitions)
    with pytest.raises(CoordinatorError) as refused:
        await sidecar.init()
    assert refused.value.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "it does not wait for ever"
    monkeypatch.setattr(module, "LOADING_SECONDS", 30)
    beginning = asyncio.create_task(sidecar.init())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not beginning.done(), "it waits"
    log.hold_reads.set()
    assert (await beginning).epoch == 0
    sidecar.shard.term.depose("end")


async def test_a_producer_that_waits_is_told_at_once_when_the_term_ends(
    log: MemoryOffsets, partitions: Partitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOADING_SECONDS", 30)
    sidecar = await loading(log, partitions)
    beginning = asyncio.create_task(sidecar.init())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not beginning.done()
    sidecar.shard.term.depose("the election chose another")
    with pytest.raises(CoordinatorError) as refused:
        async with asyncio.timeout(10):
            await beginning
    assert refused.value.error is ErrorCode.NOT_COORDINATOR


async def test_a_transaction_from_its_beginning_to_its_end(sidecar: Sidecar, partitions: Partitions) -> None:
    producer = await sidecar.init()
    assert producer.epoch == 0
    assert await sidecar.coordinator.add_partitions("x", producer, {A}, 0) is NONE
    assert await sidecar.coordinator.add_partitions("x", producer, {A, B}, 0) is NONE
    assert await sidecar.coordinator.verify("x", producer, A, adds=False) == 1
    assert (await sidecar.coordinator.end("x", producer, True, 0)).error is NONE
    await sidecar.state(TransactionState.COMPLETE_COMMIT)
    assert partitions.written == [(A, 1, 0, True), (B, 1, 0, True)]
    assert await sidecar.coordinator.verify("x", producer, A, adds=False) is ErrorCode.TRANSACTION_ABORTABLE
    assert await sidecar.coordinator.add_partitions("x", producer, {A}, 0) is NONE
    assert await sidecar.coordinator.verify("x", producer, A, adds=False) == 2
    assert (await sidecar.coordinator.end("x", producer, False, 0)).error is NONE
    await sidecar.state(TransactionState.COMPLETE_ABORT)
    assert partitions.written[2:] == [(A, 2, 0, False)]


async def test_of_version_2_batches_add_their_partitions_and_each_end_bumps_the_epoch(
    sidecar: Sidecar, partitions: Partitions
) -> None:
    producer = await sidecar.init()
    numbers = await asyncio.gather(
        *(sidecar.coordinator.verify("x", producer, ("t", number), adds=True) for number in range(16))
    )
    assert numbers == [1] * 16, "though they come at once"
    ended = await sidecar.coordinator.end("x", producer, True, 2)
    assert (ended.error, ended.producer_id, ended.epoch) == (NONE, producer.producer_id, 1)
    assert await sidecar.coordinator.verify("x", Producer(ended.producer_id, ended.epoch), A, adds=True) == 2
    assert {(number, epoch) for _, number, epoch, _ in partitions.written} == {(1, 1)}, (
        "the marker fences the epoch before"
    )
    assert await sidecar.coordinator.verify("x", producer, A, adds=True) is ErrorCode.PRODUCER_FENCED


async def test_who_goes_on_at_once_waits_for_the_markers(
    sidecar: Sidecar, partitions: Partitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMPLETION_SECONDS", 2.0)
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    partitions.held.clear()
    assert (await sidecar.coordinator.end("x", producer, True, 0)).error is NONE, "it is decided"
    following = asyncio.create_task(sidecar.coordinator.add_partitions("x", producer, {B}, 0))
    await asyncio.sleep(0.02)
    assert not following.done()
    partitions.held.set()
    assert await following is NONE
    await sidecar.coordinator.end("x", producer, True, 0)
    await sidecar.state(TransactionState.COMPLETE_COMMIT)
    monkeypatch.setattr(module, "COMPLETION_SECONDS", 0.01)
    partitions.held.clear()
    await sidecar.coordinator.add_partitions("x", producer, {B}, 0)
    await sidecar.coordinator.end("x", producer, True, 0)
    assert await sidecar.coordinator.add_partitions("x", producer, {A}, 0) is ErrorCode.CONCURRENT_TRANSACTIONS
    partitions.held.set()


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    "step", ["prepare is not stored", "prepared", "some markers", "all markers", "complete is not stored"]
)
async def test_whoever_leads_next_finishes_what_is_there(
    log: MemoryOffsets, sidecar: Sidecar, partitions: Partitions, commit: bool, step: str
) -> None:
    """The coordinator dies at each step of an end, and with it the answer, or only the completion."""
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A, B}, 0)
    if step == "prepare is not stored":
        log.cut_next = 0
    elif step == "prepared":
        partitions.held.clear()
    elif step == "some markers":
        partitions.fail = [NONE, Unavailable("and then it died")]
    elif step == "complete is not stored":
        log.cut_next, log.spare = 0, 1
    try:
        answer = (await sidecar.coordinator.end("x", producer, commit, 0)).error
    except CoordinatorError as refused:
        answer = refused.error
    assert answer is (ErrorCode.NOT_COORDINATOR if step == "prepare is not stored" else NONE)
    if step == "all markers":
        async with asyncio.timeout(2):
            while len(partitions.written) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
    await asyncio.sleep(0.005)
    sidecar.shard.term.depose("it died")
    partitions.held.set()
    partitions.fail.clear()
    following = Sidecar(log, partitions)
    await following.lead()
    if step == "prepare is not stored":
        assert following.shard.transactions["x"].state is TransactionState.ONGOING
        assert (await following.coordinator.end("x", producer, commit, 0)).error is NONE, "the producer asks again"
    await following.state(TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert {partition for partition, *_ in partitions.written} == {A, B}
    assert {tuple(what) for _, *what in partitions.written} == {(1, 0, commit)}
    following.shard.term.depose("end")


async def test_a_marker_is_tried_until_it_is_written(sidecar: Sidecar, partitions: Partitions) -> None:
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    partitions.fail = [ErrorCode.NOT_LEADER_OR_FOLLOWER, Unavailable("no broker"), ErrorCode.REQUEST_TIMED_OUT]
    await sidecar.coordinator.end("x", producer, True, 0)
    await sidecar.state(TransactionState.COMPLETE_COMMIT)
    assert partitions.written == [(A, 1, 0, True)]


async def test_one_that_was_there_already_is_written(sidecar: Sidecar, partitions: Partitions) -> None:
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    partitions.fail = [ErrorCode.INVALID_TXN_STATE]
    await sidecar.coordinator.end("x", producer, True, 0)
    await sidecar.state(TransactionState.COMPLETE_COMMIT)
    assert not partitions.written


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_topic_that_is_missing_for_half_a_minute_is_deleted_and_needs_none(comes_back: bool) -> None:
    """A broker that has just started may not know it."""
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata = TransactionMetadata(
        transactional_id="x",
        producer_id=7,
        producer_epoch=0,
        timeout_ms=1,
        state=TransactionState.PREPARE_COMMIT,
        last_update_timestamp=1,
        partitions=frozenset({A}),
        number=1,
    )

    async def play() -> None:
        partitions = Partitions(fail=[missing] * 8)
        if not comes_back:
            partitions.fail += [Unavailable("no broker"), *[missing] * 100]  # the failure says nothing
        begun = asyncio.get_running_loop().time()
        await Markers(partitions).write(metadata)
        took = asyncio.get_running_loop().time() - begun
        assert bool(partitions.written) is comes_back
        assert took < GONE_SECONDS if comes_back else GONE_SECONDS <= took < GONE_SECONDS + 5

    in_virtual_time(play())


def test_a_topic_is_there_that_was_seen_between_two_answers_that_it_is_missing() -> None:
    metadata = TransactionMetadata(
        transactional_id="x",
        producer_id=7,
        producer_epoch=0,
        timeout_ms=1,
        state=TransactionState.PREPARE_COMMIT,
        last_update_timestamp=1,
        partitions=frozenset({A}),
        number=1,
    )

    async def play() -> None:
        partitions = Partitions(fail=[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS] * 50)
        await Markers(partitions).write(metadata)
        assert partitions.written

    in_virtual_time(play())


async def test_a_second_producer_aborts_what_the_first_has_open(sidecar: Sidecar, partitions: Partitions) -> None:
    first = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", first, {A}, 0)
    partitions.held.clear()
    assert (
        await sidecar.coordinator.init_producer_id("x", 60_000, NOBODY)
    ).error is ErrorCode.CONCURRENT_TRANSACTIONS, "it takes too long"
    following = asyncio.create_task(sidecar.init())
    await asyncio.sleep(0.005)
    partitions.held.set()
    second = await following
    assert partitions.written == [(A, 1, 1, False)]
    assert (second.producer_id, second.epoch) == (first.producer_id, 2)
    assert (await sidecar.coordinator.end("x", first, True, 0)).error is ErrorCode.PRODUCER_FENCED


async def test_one_that_lasts_too_long_is_aborted(sidecar: Sidecar, partitions: Partitions) -> None:
    producer = await sidecar.init(timeout_ms=5_000)
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    sidecar.now += 5_000
    await sidecar.coordinator._abort_timed_out()
    assert sidecar.shard.transactions["x"].state is TransactionState.ONGOING
    sidecar.now += 1
    await sidecar.coordinator._abort_timed_out()
    await sidecar.state(TransactionState.COMPLETE_ABORT)
    assert partitions.written == [(A, 1, 1, False)]
    assert await sidecar.coordinator.verify("x", producer, A, adds=False) is ErrorCode.PRODUCER_FENCED


async def test_an_id_that_nobody_uses_is_forgotten(log: MemoryOffsets, sidecar: Sidecar) -> None:
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    sidecar.now += TransactionsConfig().id_expiration_ms
    await sidecar.coordinator._delete_expired()
    assert "x" in sidecar.shard.transactions, "it has a transaction"
    await sidecar.coordinator.end("x", producer, False, 0)
    await sidecar.state(TransactionState.COMPLETE_ABORT)
    sidecar.now += TransactionsConfig().id_expiration_ms
    await sidecar.coordinator._delete_expired()
    assert not sidecar.shard.transactions
    assert log.stored[-1][1] is None
    assert (await sidecar.coordinator.end("x", producer, False, 0)).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_what_makes_no_sense_is_refused(sidecar: Sidecar) -> None:
    for timeout in (0, -1, TransactionsConfig().max_timeout_ms + 1):
        assert (
            await sidecar.coordinator.init_producer_id("x", timeout, NOBODY)
        ).error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    for name in ("", "x" * 40_000):
        with pytest.raises(CoordinatorError) as refused:
            await sidecar.coordinator.init_producer_id(name, 1_000, NOBODY)
        assert refused.value.error is ErrorCode.INVALID_REQUEST
    assert not sidecar.shard.changing


async def test_who_does_not_lead_says_so(sidecar: Sidecar) -> None:
    sidecar.shard.term.depose("the election chose another")
    with pytest.raises(CoordinatorError) as refused:
        await sidecar.coordinator.verify("x", Producer(1, 0), A, adds=False)
    assert refused.value.error is ErrorCode.NOT_COORDINATOR


async def test_one_that_has_gone_on_while_others_were_aborted_is_left_alone(
    log: MemoryOffsets, sidecar: Sidecar
) -> None:
    coordinator = sidecar.coordinator
    producers = {}
    for name in ("x", "y"):
        found = await coordinator.init_producer_id(name, 5_000, NOBODY)
        producers[name] = Producer(found.producer_id, found.epoch)
        await coordinator.add_partitions(name, producers[name], {A}, 0)
    sidecar.now += 5_001
    log.hold_receipts = True
    aborting = asyncio.create_task(coordinator._abort_timed_out())
    await asyncio.sleep(0.005)
    first = next(iter(sidecar.shard.changing))
    other = "y" if first == "x" else "x"
    ending = asyncio.create_task(coordinator.end(other, producers[other], True, 0))
    await asyncio.sleep(0.005)
    log.hold_receipts = False
    assert log.owner is not None
    log.owner.let_go()
    assert (await ending).error is NONE
    await aborting
    async with asyncio.timeout(2):
        while sidecar.shard.unfinished:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert sidecar.shard.transactions[first].state is TransactionState.COMPLETE_ABORT
    assert sidecar.shard.transactions[other].state is TransactionState.COMPLETE_COMMIT


async def test_a_change_is_under_way_until_its_write_has_an_outcome_whoever_waits_for_it(
    log: MemoryOffsets, sidecar: Sidecar
) -> None:
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    log.hold_receipts = True
    ending = asyncio.create_task(sidecar.coordinator.end("x", producer, True, 0))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.sleep(0)
    assert (await sidecar.coordinator.end("x", producer, False, 0)).error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert log.owner is not None
    log.hold_receipts = False
    log.owner.let_go()
    await sidecar.state(TransactionState.COMPLETE_COMMIT)
    assert not sidecar.shard.changing


async def test_who_goes_on_waits_for_the_markers_and_not_for_the_record_that_they_are_written(
    log: MemoryOffsets, sidecar: Sidecar, partitions: Partitions
) -> None:
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    partitions.held.clear()
    assert (await sidecar.coordinator.end("x", producer, True, 0)).error is NONE
    log.hold_receipts = True
    partitions.held.set()
    before = len(log.stored)
    following = asyncio.create_task(sidecar.coordinator.add_partitions("x", producer, {B}, 0))
    async with asyncio.timeout(2):
        while len(log.stored) < before + 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    written = [TransactionRecords().read(key, value) for key, value in log.stored[-2:]]
    assert [one.metadata.state for one in written if one and one.metadata] == [
        TransactionState.COMPLETE_COMMIT,
        TransactionState.ONGOING,
    ]
    assert not following.done(), "it is told nothing before it is stored"
    assert log.owner is not None
    log.hold_receipts = False
    log.owner.let_go()
    assert await following is NONE
    found = sidecar.shard.transactions["x"]
    assert (set(found.partitions), found.number) == ({B}, 2)


async def test_the_next_transaction_of_version_2_waits_for_the_markers_of_the_one_before(
    log: MemoryOffsets, sidecar: Sidecar, partitions: Partitions
) -> None:
    """Its producer was told its new epoch when the end was decided, and may abort at once what it begins."""
    producer = await sidecar.init()
    await sidecar.coordinator.verify("x", producer, A, adds=True)
    partitions.held.clear()
    ended = await sidecar.coordinator.end("x", producer, True, 2)
    following = Producer(ended.producer_id, ended.epoch)
    assert (await sidecar.coordinator.end("x", following, False, 2)).error is ErrorCode.CONCURRENT_TRANSACTIONS
    partitions.held.set()
    assert (await sidecar.coordinator.end("x", following, False, 2)).error is NONE


async def test_partitions_that_wait_together_are_told_together(sidecar: Sidecar, partitions: Partitions) -> None:
    producer = await sidecar.init()
    await sidecar.coordinator.verify("x", producer, A, adds=True)
    partitions.held.clear()
    ended = await sidecar.coordinator.end("x", producer, True, 2)
    following = Producer(ended.producer_id, ended.epoch)
    begun = asyncio.get_running_loop().time()
    answers = await asyncio.gather(
        *(sidecar.coordinator.verify("x", following, ("t", number), adds=True) for number in range(16))
    )
    assert answers == [ErrorCode.CONCURRENT_TRANSACTIONS] * 16
    assert asyncio.get_running_loop().time() - begun < 4 * module.COMPLETION_SECONDS, "and not one after the other"
    partitions.held.set()


async def test_a_completion_that_fails_in_the_sidecar_itself_is_done_again(
    log: MemoryOffsets, sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    store = sidecar.shard.term.store
    failures = 0

    def fails_once(records: Sequence[TransactionRecord], done: Callable[[ErrorCode], None] = lambda _: None) -> None:
        nonlocal failures
        if (
            records
            and records[0].metadata is not None
            and records[0].metadata.state is TransactionState.COMPLETE_COMMIT
            and not failures
        ):
            failures += 1
            raise RuntimeError("once")
        store(records, done)

    monkeypatch.setattr(sidecar.shard.term, "store", fails_once)
    await sidecar.coordinator.end("x", producer, True, 0)
    await sidecar.state(TransactionState.COMPLETE_COMMIT)
    assert failures == 1
    assert await sidecar.coordinator.add_partitions("x", producer, {B}, 0) is NONE
    assert sidecar.shard.transactions["x"].number == 2


async def test_nothing_is_written_into_a_shard_that_is_being_read(log: MemoryOffsets, sidecar: Sidecar) -> None:
    """An old state of an id may look as if its transaction had timed out."""
    producer = await sidecar.init(timeout_ms=5_000)
    await sidecar.coordinator.add_partitions("x", producer, {A}, 0)
    sidecar.now += 5_001
    metadata = sidecar.shard.transactions["x"]
    sidecar.shard.term.depose("the election chose another")
    sidecar.shard.transactions["x"] = metadata  # as while it is read again
    sidecar.shard.unfinished.add("x")
    stored = len(log.stored)
    with pytest.raises(CoordinatorError):
        await sidecar.shard.change("x", None)
    assert len(log.stored) == stored


async def test_a_producer_that_begins_waits_for_what_its_predecessor_has_asked(
    sidecar: Sidecar, log: MemoryOffsets
) -> None:
    """It was killed while that was being stored. sarama does not ask again."""
    producer = await sidecar.init()
    log.hold_receipts = True
    adding = asyncio.create_task(sidecar.coordinator.add_partitions("x", producer, {A}, 0))
    await asyncio.sleep(0.01)
    beginning = asyncio.create_task(sidecar.init())
    await asyncio.sleep(0.01)
    assert not beginning.done()
    log.hold_receipts = False
    assert isinstance(sidecar.shard.term._term_log, MemoryTermLog)
    sidecar.shard.term._term_log.let_go()
    assert await adding is NONE
    assert (await beginning).producer_id == producer.producer_id


async def test_producers_that_begin_while_another_begins_wait_for_one_another(
    sidecar: Sidecar, log: MemoryOffsets
) -> None:
    """An application was killed and started three times while its first change was being stored."""
    await sidecar.init()
    log.hold_receipts = True
    beginning = [asyncio.create_task(sidecar.init()) for _ in range(4)]
    assert isinstance(sidecar.shard.term._term_log, MemoryTermLog)
    for _ in beginning:
        await asyncio.sleep(0.01)
        sidecar.shard.term._term_log.let_go()
    begun = await asyncio.gather(*beginning)
    assert len({one.epoch for one in begun}) == len(begun)


@pytest.mark.parametrize("starts", [2, 4])
async def test_producers_that_begin_while_markers_are_written_wait_for_one_another(
    sidecar: Sidecar, log: MemoryOffsets, partitions: Partitions, starts: int
) -> None:
    producer = await sidecar.init()
    await sidecar.coordinator.add_partitions("x", producer, {A}, 1)
    partitions.held.clear()
    beginning = [asyncio.create_task(sidecar.init())]
    await asyncio.sleep(0.01)
    beginning += [asyncio.create_task(sidecar.init()) for _ in range(starts - 1)]
    await asyncio.sleep(0.01)
    log.hold_receipts = True
    partitions.held.set()
    assert isinstance(sidecar.shard.term._term_log, MemoryTermLog)
    for _ in range(2 * starts):
        await asyncio.sleep(0.005)
        sidecar.shard.term._term_log.let_go()
    begun = await asyncio.gather(*beginning)
    assert len({one.epoch for one in begun}) == starts


async def test_an_id_is_not_changing_when_its_record_could_not_be_made(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for it would wait for ever."""
    await sidecar.init()
    term_log = sidecar.shard.term._term_log

    def append(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(term_log, "append", append)
    with pytest.raises(ValueError, match="a bug"):
        await sidecar.init()
    assert not sidecar.shard.changing
