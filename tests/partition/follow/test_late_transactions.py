"""A batch that landed behind its transaction's marker, which retention has taken: its coordinator knows that the
transaction has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from kafka_sidecar.internal_topics.snapshot_places import Kept
from kafka_sidecar.partition.follow.late_transactions import LOOK_SECONDS, AskEnded, EndedTransactions
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition, read_all
from tests.support.transactions import COMMITTED, PRODUCER, Coordinator, committed_values, end, write

NUMBER = 100


class Coordinators:
    """They say the same to whoever asks."""

    def __init__(self, *ended: EndedTransactions) -> None:
        self.ended = dict.fromkeys((PRODUCER,), *ended) if ended else {}
        self.asked: list[Sequence[int]] = []
        self.is_away = False

    async def __call__(self, producer_ids: Sequence[int]) -> Mapping[int, EndedTransactions]:
        self.asked.append(producer_ids)
        if self.is_away:
            raise Unavailable("no coordinator")
        return self.ended


async def opened_with_an_open_one(ask: AskEnded) -> tuple[MemoryLog, Partition]:
    log = MemoryLog()
    writer = open_partition(log, "kafka-sidecar-writer")
    await write(writer, Coordinator(NUMBER), b"late", sequence=0)
    await append(writer, batch(b"behind"))
    writer.close()
    partition = open_partition(log, ask_ended=ask)
    assert await partition.opened() is ErrorCode.NONE
    return log, partition


async def asked_again(partition: Partition, coordinators: Coordinators) -> None:
    """It is looked at once more, and the answer has come."""
    asked = len(coordinators.asked)
    partition.tick(partition._late._look_at + 0.1)
    await until(lambda: len(coordinators.asked) > asked)
    await until(lambda: partition._late._looking is None)


@pytest.mark.parametrize("is_cold", [False, True])
async def test_a_batch_of_one_that_has_ended_is_hidden(is_cold: bool) -> None:
    coordinators = Coordinators(EndedTransactions(NUMBER, 1))
    _, partition = await opened_with_an_open_one(coordinators)
    await until(lambda: partition.last_stable_offset == 2)
    if is_cold:
        partition._cache.clear()
    assert await committed_values(partition) == [b"behind"]
    assert [value for _, value in await read_all(partition)] == [b"behind"]
    assert coordinators.asked == [[PRODUCER]]
    partition.close()


@pytest.mark.parametrize(
    "ended",
    [
        pytest.param((EndedTransactions(NUMBER - 1, 1),), id="it is ongoing"),
        pytest.param((EndedTransactions(NUMBER, NUMBER + 1),), id="its marker may have gone elsewhere"),
        pytest.param((), id="nobody knows its producer"),
    ],
)
async def test_one_that_may_be_decided_yet_stays_open(ended: tuple[EndedTransactions, ...]) -> None:
    coordinators = Coordinators(*ended)
    _, partition = await opened_with_an_open_one(coordinators)
    await until(lambda: coordinators.asked and partition._late._looking is None)
    assert (partition.last_stable_offset, partition.end_offset) == (0, 2)
    partition.close()


async def test_it_is_asked_again_where_no_answer_came() -> None:
    coordinators = Coordinators(EndedTransactions(NUMBER, 1))
    coordinators.is_away = True
    _, partition = await opened_with_an_open_one(coordinators)
    await until(lambda: coordinators.asked and partition._late._looking is None)
    assert partition.last_stable_offset == 0
    coordinators.is_away = False
    await asked_again(partition, coordinators)
    assert partition.last_stable_offset == 2
    partition.close()


async def test_a_marker_that_lands_before_the_answer_counts() -> None:
    """The coordinator has written it, and this sidecar has not read it yet."""
    log: MemoryLog | None = None

    class Writes(Coordinators):
        async def __call__(self, producer_ids: Sequence[int]) -> Mapping[int, EndedTransactions]:
            if log is not None and not self.asked:
                other = open_partition(log, "kafka-sidecar-other")
                await end(other, COMMITTED, NUMBER)
                other.close()
            return await super().__call__(producer_ids)

    coordinators = Writes(EndedTransactions(NUMBER - 1, 1))
    log, partition = await opened_with_an_open_one(coordinators)
    await until(lambda: coordinators.asked and partition._late._looking is None)
    coordinators.ended = {PRODUCER: EndedTransactions(NUMBER, 1)}
    coordinators.asked.clear()
    await asked_again(partition, coordinators)
    assert await committed_values(partition) == [b"late", b"behind"]
    partition.close()


async def test_one_that_has_just_begun_is_not_asked_about() -> None:
    coordinators = Coordinators()
    partition = open_partition(MemoryLog(), ask_ended=coordinators)
    await append(partition, batch(b"before"))
    await write(partition, Coordinator(NUMBER), b"a", sequence=0)
    now = partition._loop.time()
    partition.tick(now + LOOK_SECONDS)
    assert coordinators.asked == []
    partition.tick(now + 3 * LOOK_SECONDS)
    await until(lambda: coordinators.asked)
    partition.close()


async def test_what_was_kept_before_shows_it_to_nobody() -> None:
    """Nothing is written behind it, and its coordinator has forgotten the producer when the partition is opened
    again.
    """
    log, states = MemoryLog(), MemoryStates()
    writer = open_partition(log, "kafka-sidecar-writer", states=states)
    await write(writer, Coordinator(NUMBER), b"late", sequence=0)
    await append(writer, batch(b"behind"))
    await asyncio.gather(*writer.close())
    hiding = open_partition(
        log, "kafka-sidecar-hiding", states=states, ask_ended=Coordinators(EndedTransactions(NUMBER, 1))
    )
    await hiding.opened()
    await until(lambda: hiding.last_stable_offset == 2)
    await asyncio.gather(*hiding.close())
    later = open_partition(log, "kafka-sidecar-later", states=states, ask_ended=Coordinators())
    assert await committed_values(later) == [b"behind"]
    later.close()


async def test_what_is_hidden_while_the_fold_is_being_kept_is_kept_later() -> None:
    log, states = MemoryLog(), MemoryStates()
    partition = open_partition(log, states=states)
    await write(partition, Coordinator(NUMBER), b"late", sequence=0)
    partition._folds._keep()
    assert partition.transactions.hide_late(PRODUCER, NUMBER, partition.end_offset)
    partition.on_late_hidden()
    assert partition._folds.keeping is not None
    await partition._folds.keeping
    await asyncio.gather(*partition.close())
    later = open_partition(log, "kafka-sidecar-later", states=states)
    await later.opened()
    assert later.last_stable_offset == later.end_offset
    later.close()


async def keep(partition: Partition) -> None:
    partition._folds._keep()
    assert partition._folds.keeping is not None
    await partition._folds.keeping


def unreadable(states: MemoryStates, monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    """Values with this in their keys."""
    look_up = states.look_up

    async def fails(key: bytes) -> Kept | None:
        if part in key:
            raise Unavailable("a broker is away")
        return await look_up(key)

    monkeypatch.setattr(states, "look_up", fails)


async def hidden_by_a(log: MemoryLog, states: MemoryStates) -> Partition:
    """A partition that has hidden a late batch, and has not kept that yet."""
    writer = open_partition(log, "kafka-sidecar-writer", states=states)
    await write(writer, Coordinator(NUMBER), b"late", sequence=0)
    await append(writer, batch(b"behind"))
    await asyncio.gather(*writer.close())
    partition = open_partition(
        log, "kafka-sidecar-a", states=states, ask_ended=Coordinators(EndedTransactions(NUMBER, 1))
    )
    await partition.opened()
    await until(lambda: partition.last_stable_offset == 2)
    return partition


async def test_what_is_hidden_is_kept_although_another_sidecar_has_kept_more() -> None:
    """The other one does not know of it."""
    log, states = MemoryLog(), MemoryStates()
    partition = await hidden_by_a(log, states)
    coordinators = Coordinators()
    coordinators.is_away = True
    other = open_partition(log, "kafka-sidecar-b", states=states, ask_ended=coordinators)
    await other.opened()
    asks, answers = asyncio.Event(), asyncio.Event()

    async def names(prefix: bytes) -> list[bytes]:
        asks.set()
        await answers.wait()
        return await MemoryStates.names(states, prefix)

    states.names = names  # type: ignore[method-assign]
    partition._folds._keep()
    await asks.wait()
    del states.names
    await append(other, batch(b"more"))
    await asyncio.gather(*other.close())
    answers.set()
    await partition.confirmed_end()
    await asyncio.gather(*partition.close())
    later = open_partition(log, "kafka-sidecar-later", states=states, ask_ended=Coordinators())
    await later.opened()
    assert later.last_stable_offset == later.end_offset
    later.close()


async def test_what_is_hidden_is_kept_at_the_end_if_it_could_not_be_kept_before() -> None:
    log, states = MemoryLog(), MemoryStates()
    partition = await hidden_by_a(log, states)
    stores, fails = asyncio.Event(), asyncio.Event()

    async def store(key: bytes, value: bytes) -> None:
        del states.store  # the next one is stored
        stores.set()
        await fails.wait()
        raise Unavailable("the connection was lost")

    states.store = store  # type: ignore[method-assign]
    partition._folds._keep()
    await stores.wait()
    closing = partition.close()
    fails.set()
    await asyncio.gather(*closing)
    later = open_partition(log, "kafka-sidecar-later", states=states, ask_ended=Coordinators())
    await later.opened()
    assert later.last_stable_offset == later.end_offset
    later.close()


async def is_hidden_from_who_comes_later(log: MemoryLog, states: MemoryStates) -> bool:
    """Coordinators have forgotten the producer by then."""
    later = open_partition(log, "kafka-sidecar-later", states=states, ask_ended=Coordinators())
    await later.opened()
    is_hidden = later.last_stable_offset == later.end_offset
    await asyncio.gather(*later.close())
    return is_hidden


async def who_does_not_know(log: MemoryLog, states: MemoryStates) -> Partition:
    coordinators = Coordinators()
    coordinators.is_away = True
    partition = open_partition(log, "kafka-sidecar-b", states=states, ask_ended=coordinators)
    await partition.opened()
    return partition


@pytest.mark.parametrize("closes_last", ["it", "the other"])
async def test_who_keeps_more_takes_over_what_another_has_hidden(closes_last: str) -> None:
    log, states = MemoryLog(), MemoryStates()
    partition = await hidden_by_a(log, states)
    other = await who_does_not_know(log, states)
    await keep(partition)
    await append(other, batch(b"more"))
    assert other.last_stable_offset == 0
    await keep(other)
    assert other.last_stable_offset == other.end_offset == 3, "it is hidden there, too"
    await partition.confirmed_end()
    for one in (other, partition) if closes_last == "it" else (partition, other):
        await asyncio.gather(*one.close())
    assert await is_hidden_from_who_comes_later(log, states)


async def test_what_is_hidden_is_kept_beside_as_much_that_another_has_kept() -> None:
    log, states = MemoryLog(), MemoryStates()
    writer = open_partition(log, "kafka-sidecar-writer", states=states)
    await write(writer, Coordinator(NUMBER), b"late", sequence=0)
    partition = open_partition(
        log, "kafka-sidecar-a", states=states, ask_ended=Coordinators(EndedTransactions(NUMBER, 1))
    )
    await partition.opened()
    await until(lambda: partition.last_stable_offset == 1)
    await asyncio.gather(*writer.close())
    await asyncio.gather(*partition.close())
    assert await is_hidden_from_who_comes_later(log, states)


async def test_what_was_hidden_by_another_before_is_taken_over_too() -> None:
    log, states = MemoryLog(), MemoryStates()
    first = await hidden_by_a(log, states)
    other = await who_does_not_know(log, states)
    await asyncio.gather(*first.close())
    second = open_partition(log, "kafka-sidecar-a2", states=states, ask_ended=Coordinators())
    await second.opened()
    assert second.last_stable_offset == 2
    await append(other, batch(b"more"))
    await asyncio.gather(*other.close())
    await second.confirmed_end()
    await asyncio.gather(*second.close())
    assert await is_hidden_from_who_comes_later(log, states)


async def kept_by_a(log: MemoryLog, states: MemoryStates) -> None:
    """A sidecar has hidden a late batch, has kept that, and is killed."""
    partition = await hidden_by_a(log, states)
    await keep(partition)


@pytest.mark.parametrize("meanwhile", ["it closes", "it hears of it"])
async def test_what_is_not_in_the_last_snapshot_is_not_deleted(meanwhile: str) -> None:
    log, states = MemoryLog(), MemoryStates()
    other = await who_does_not_know(log, states)
    await kept_by_a(log, states)
    await other.confirmed_end()
    stores, may_go_on = asyncio.Event(), asyncio.Event()

    async def store(key: bytes, value: bytes) -> None:
        stores.set()
        await may_go_on.wait()
        await MemoryStates.store(states, key, value)

    states.store = store  # type: ignore[method-assign]
    await append(other, batch(b"more"))
    other._folds._keep()
    await stores.wait()
    if meanwhile == "it closes":
        closing = other.close()
        may_go_on.set()
        await asyncio.gather(*closing)
    else:
        assert other.transactions.hide_late(PRODUCER, NUMBER, other.end_offset)
        other.on_late_hidden()
        may_go_on.set()
        assert other._folds.keeping is not None
        await other._folds.keeping  # it is killed behind this
    assert await is_hidden_from_who_comes_later(log, states)


async def test_what_could_not_be_read_is_taken_over_later(monkeypatch: pytest.MonkeyPatch) -> None:
    log, states = MemoryLog(), MemoryStates()
    other = await who_does_not_know(log, states)
    await kept_by_a(log, states)
    unreadable(states, monkeypatch, b":+")
    for _ in range(2):
        await append(other, batch(b"more"))
        await keep(other)
        assert other.last_stable_offset < other.end_offset
    third = open_partition(log, "kafka-sidecar-c", states=states)
    assert await third.opened() is ErrorCode.NONE, "it opens all the same"
    third.close()
    monkeypatch.undo()
    await append(other, batch(b"more"))
    await asyncio.gather(*other.close())
    assert other.last_stable_offset == other.end_offset
    assert await is_hidden_from_who_comes_later(log, states)


async def test_what_can_not_be_read_keeps_nobody_from_what_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it covers is deleted all the same."""
    log, states = MemoryLog(), MemoryStates()
    other = await who_does_not_know(log, states)
    await kept_by_a(log, states)
    (key,) = [key for key in states.values if b":+" in key]
    states.values |= {key.replace(b":+", b":+a"): states.values[key], key.replace(b":+", b":+b"): b"no sense"}
    unreadable(states, monkeypatch, b":+a")
    for _ in range(3):
        await append(other, batch(b"more"))
        await keep(other)
    assert other.last_stable_offset == other.end_offset
    folds = [one for one in states.values if one.startswith(b"fold:")]
    assert len(folds) == 2, "that which could not be read, and its own"
    assert any(b":+a" in one for one in folds)
    other.close()
