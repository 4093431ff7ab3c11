"""A transaction has ended, retention has taken its marker, and a batch of it lands yet: it is hidden, whatever is kept
of the partition.
"""

from __future__ import annotations

import pytest

from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition
from tests.support.transactions import (
    ABORTED,
    COMMITTED,
    Coordinator,
    committed_values,
    end,
    end_while_a_batch_hangs,
    write,
)


class AnEndThatIsGone:
    """Of a transaction of which a batch hangs. Sidecar `first` has kept that it has ended."""

    def __init__(self) -> None:
        self.log, self.states = MemoryLog(), MemoryStates()

    async def begin(self) -> None:
        for _ in range(3):
            self.log.write(batch(b"old"))
        hanging = open_partition(self.log, "kafka-sidecar-hanging")
        self.first = open_partition(self.log, "kafka-sidecar-first", states=self.states)
        self._late = await end_while_a_batch_hangs(self.log, hanging, self.first, committed=ABORTED)
        self._opened = [hanging, self.first]
        await self.keep()
        self.log.roll()

    async def write(self, value: bytes) -> None:
        assert (await append(self.first, batch(value))).error is ErrorCode.NONE
        await self.keep()

    async def keep(self) -> None:
        self.first._folds._stored_to = 0
        self.first._folds._keep()
        assert self.first._folds.keeping is not None
        await self.first._folds.keeping

    def while_others_look(self, value: bytes) -> None:
        """The first sidecar writes and keeps its fold, in a ledger that begins then."""
        names = self.states.names

        async def slow(prefix: bytes) -> list[bytes]:
            if prefix.startswith(b"fold"):
                self.states.names = names  # type: ignore[method-assign]
                self.log.roll()
                await self.write(value)
            return await names(prefix)

        self.states.names = slow  # type: ignore[method-assign]

    def take_the_first_ledger(self) -> None:
        self.log.trim(sum(entry.position.ledger == 1 for entry in self.log.entries))

    async def opened(self) -> Partition:
        partition = open_partition(self.log, "kafka-sidecar-second", states=self.states)
        assert await partition.opened() is ErrorCode.NONE
        self._opened.append(partition)
        return partition

    async def late_batch_lands(self) -> None:
        self.log.let_go()
        await self._late.result

    async def check(self, partition: Partition, values: list[bytes]) -> None:
        """The producer's next transaction is written, and read behind `values`."""
        await partition.confirmed_end()
        assert partition.last_stable_offset == partition.end_offset
        assert (await write(partition, Coordinator(101), b"next", sequence=0, epoch=1)).error is ErrorCode.NONE
        assert (await end(partition, COMMITTED, number=101, epoch=1)).error is ErrorCode.NONE
        assert await committed_values(partition, partition.log_start) == [*values, b"next"]

    def close(self) -> None:
        for partition in self._opened:
            partition.close()


@pytest.fixture
async def gone() -> AnEndThatIsGone:
    found = AnEndThatIsGone()
    await found.begin()
    return found


async def test_what_was_kept_in_a_ledger_that_began_a_moment_ago_is_used(gone: AnEndThatIsGone) -> None:
    """It began after the one who opens had looked which ledgers there are."""
    await gone.write(b"a")
    gone.take_the_first_ledger()
    gone.while_others_look(b"b")
    second = await gone.opened()
    await gone.late_batch_lands()
    await gone.check(second, [b"a", b"b"])
    gone.close()


async def test_something_comes_into_an_empty_log_while_it_is_opened(gone: AnEndThatIsGone) -> None:
    gone.take_the_first_ledger()
    gone.while_others_look(b"a")
    second = await gone.opened()
    await gone.late_batch_lands()
    await gone.check(second, [b"a"])
    gone.close()


@pytest.mark.parametrize("lands_before", [True, False])
async def test_transactions_of_others_were_found_meanwhile_and_all_is_folded_anew(
    gone: AnEndThatIsGone, lands_before: bool
) -> None:
    await gone.write(b"a")
    if lands_before:
        await gone.late_batch_lands()
        await gone.first.confirmed_end()
        await gone.write(b"b")
    gone.take_the_first_ledger()
    await gone.log.begin_transactions(BEFORE_ALL)
    second = await gone.opened()
    if not lands_before:
        await gone.late_batch_lands()
    await gone.check(second, [b"a", b"b"] if lands_before else [b"a"])
    second._folds._keep()
    assert second._folds.keeping is not None, "what it knows is kept again"
    gone.close()


async def test_what_was_hidden_in_a_topic_that_is_deleted_hides_nothing_in_the_one_that_has_its_name(
    gone: AnEndThatIsGone,
) -> None:
    await gone.late_batch_lands()
    await gone.first.confirmed_end()
    assert gone.first.transactions.hidden
    await gone.keep()
    gone.close()
    gone.log.make_anew()
    writing = open_partition(gone.log, "kafka-sidecar-writing", states=gone.states)
    for sequence in range(6):
        assert (
            await write(writing, Coordinator(200), b"%d" % sequence, sequence=sequence, producer=9)
        ).error is ErrorCode.NONE
    assert (await end(writing, COMMITTED, number=200, producer=9)).error is ErrorCode.NONE
    reading = open_partition(gone.log, "kafka-sidecar-reading", states=gone.states, cache=1)
    assert await committed_values(reading) == [b"%d" % sequence for sequence in range(6)]
    for partition in (writing, reading):
        partition.close()
