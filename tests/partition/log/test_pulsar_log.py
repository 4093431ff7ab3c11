"""The log over Pulsar: where indexes begin, asked of the broker in few questions."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest

from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.log.pulsar_log import PulsarLog
from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position
from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable
from tests.support.stored_topics import PlainTopic

ENTRIES = 10


class Broker:
    """A log of ledgers, of which some have indexes: `off` are those that were written without."""

    def __init__(self, ledgers: int, off: set[int]) -> None:
        self.ledgers = list(range(1, ledgers + 1))
        self.off = off
        self.asked = 0
        self.readable: set[Position] = set()  # all others are markers of Pulsar's own
        self.gone: set[Position] = set()
        self.away: set[int] = set()  # ledgers whose storage is away
        self.topic = PlainTopic()

    @property
    def topics(self) -> Broker:
        return self

    async def log_stats(self, topic: str) -> LogStats:
        return LogStats(tuple(LedgerInfo(ledger, ENTRIES, 100) for ledger in self.ledgers))

    async def index_of(self, topic: str, position: Position) -> int | None:
        self.asked += 1
        if position.ledger in self.away:
            raise Unavailable("Other exception")
        if position.ledger in self.off:
            return None
        before = sum(ENTRIES for ledger in self.ledgers if ledger < position.ledger and ledger not in self.off)
        return before + position.entry

    async def find_index(self, topic: str, index: int) -> Position | None:
        """By halves over all that there is."""
        if self.away:
            raise Unavailable("Other exception")
        return Position(self.ledgers[index // ENTRIES], index % ENTRIES)

    async def is_marker(self, topic: str, position: Position) -> bool:
        self.asked += 1
        if position in self.gone:
            raise TopicMissing(topic)
        return position not in self.readable


def log_over(broker: Broker) -> PulsarLog:
    return PulsarLog(cast(Any, None), cast(Any, broker), "t-partition-0", "w", broker.topic)


@pytest.mark.parametrize("old", [0, 1, 700, 999])
async def test_the_first_index_is_found_by_halves_and_remembered(old: int) -> None:
    broker = Broker(1_000, set(range(1, old + 1)))
    log = log_over(broker)
    assert await log.first_indexed() == Position(old + 1, 0)
    assert broker.asked < 20
    asked = broker.asked
    assert await log.first_indexed() == Position(old + 1, 0)
    assert broker.asked == asked
    del broker.ledgers[: old + 1]  # retention
    if broker.ledgers:
        assert await log.first_indexed() == Position(old + 2, 0)


async def test_where_nothing_has_an_index_there_is_no_first() -> None:
    log = log_over(Broker(8, set(range(1, 9))))
    assert await log.first_indexed() is None
    assert await log.first_indexed_of_all() is None


async def test_where_it_was_switched_off_and_on_again_every_ledger_is_asked() -> None:
    log = log_over(Broker(10, {1, 2, 4, 5, 6, 7}))
    assert await log.first_indexed_of_all() == Position(3, 0)


@pytest.mark.parametrize("index", [0, 9, 10, 25, 39])
async def test_an_index_is_found_among_ledgers_without_any(index: int) -> None:
    log = log_over(Broker(10, {1, 2, 4, 5, 6, 7}))
    log.note_entries_without_index()
    assert await log.find_index(index) == Position((3, 8, 9, 10)[index // ENTRIES], index % ENTRIES)
    assert await log.find_index(40) is None


async def test_an_index_behind_ledgers_whose_storage_is_away_is_found_all_the_same() -> None:
    broker = Broker(10, set())
    log = log_over(broker)
    assert await log.find_index(85) == Position(9, 5)
    broker.away = {1, 2, 3, 8}
    for index in (81, 85, 99):
        assert await log.find_index(index) == Position(index // ENTRIES + 1, index % ENTRIES)
    for index in (5, 75, 80, 100):  # in what is away, where one of its entries may end, and behind the end
        with pytest.raises(Unavailable):
            await log.find_index(index)


async def test_a_topic_that_was_made_anew_since_is_another() -> None:
    broker = Broker(1, set())
    log = log_over(broker)
    assert not await log.is_another(), "nothing was opened"
    await log.config()
    assert not await log.is_another()
    broker.topic.topic_id = uuid.UUID(int=2)
    assert await log.is_another()
    broker.topic.topic_id = None
    assert await log.is_another(), "it is gone"


@pytest.mark.parametrize(
    ("readable", "behind", "found"),
    [
        ({Position(9, 9)}, BEFORE_ALL, Position(9, 9)),
        ({Position(9, 8), Position(2, 0)}, BEFORE_ALL, Position(9, 8)),
        ({Position(3, 7)}, BEFORE_ALL, Position(3, 7)),
        ({Position(3, 7)}, Position(5, 0), Position(5, 0)),
        (set(), BEFORE_ALL, None),
    ],
)
async def test_the_last_entry_that_readers_are_given_is_found_behind_any_number_of_markers(
    readable: set[Position], behind: Position, found: Position | None
) -> None:
    broker = Broker(9, set())
    broker.readable = readable
    assert await log_over(broker).last_readable(Position(9, 9), behind) == found


async def test_a_log_of_very_many_markers_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.partition.log.pulsar_log.PULSAR_MARKERS_AT_MOST", 48)
    broker = Broker(9, set())
    with pytest.raises(Unavailable, match="48 entries of t-partition-0 are markers"):
        await log_over(broker).last_readable(Position(9, 9), BEFORE_ALL)
    assert broker.asked == 49


async def test_a_log_with_one_marker_at_its_end_is_asked_for_few_entries() -> None:
    """Each question has a whole entry for an answer."""
    broker = Broker(9, set())
    broker.readable = {Position(9, 8)}
    await log_over(broker).last_readable(Position(9, 9), BEFORE_ALL)
    assert broker.asked == 2


async def test_an_older_entry_that_retention_takes_meanwhile_does_not_matter() -> None:
    broker = Broker(9, set())
    broker.readable = {Position(9, 7)}
    broker.gone = {Position(9, 6)}
    assert await log_over(broker).last_readable(Position(9, 9), BEFORE_ALL) == Position(9, 7)
