"""Who has expired is told by what the broker's clock said when entries were stored."""

from __future__ import annotations

from kafka_sidecar.partition.fold.log_times import DAY_MS, MARKS, NOWHERE, LogTimes, Mark
from kafka_sidecar.pulsar.entry import Position

HOUR_MS = DAY_MS // MARKS


def after(*hours: float) -> LogTimes:
    """Entry N was stored after so many hours."""
    times = LogTimes(DAY_MS)
    for entry, hour in enumerate(hours):
        times.note(Position(1, entry), int(hour * HOUR_MS))
    return times


def test_nobody_expires_within_a_day() -> None:
    assert after(0, 12, 23.9).expired_to == NOWHERE


def test_who_has_written_nothing_since_has_expired_after_a_day() -> None:
    assert after(0, 12, 24).expired_to == Position(1, 0)
    assert after(0, 1, 2, 3, 26).expired_to == Position(1, 2)


def test_a_mark_an_hour_is_enough() -> None:
    times = after(*(hour / 100 for hour in range(10_000)))
    assert len(times.marks) <= MARKS + 2
    assert abs(times.expired_to.entry - 7_500) <= 101


def test_an_entry_that_is_read_once_more_changes_nothing() -> None:
    times = after(0, 2, 4)
    times.note(Position(1, 1), 30 * HOUR_MS)
    assert times.expired_to == NOWHERE


def test_a_broker_whose_clock_is_ahead_keeps_nobody_from_expiring_later() -> None:
    times = after(10, 10_000, 11, 12, 36.5)
    assert [mark.at for mark in times.marks] == [12 * HOUR_MS, 36.5 * HOUR_MS]
    assert times.expired_to == Position(1, 3)


def test_who_had_expired_by_a_clock_that_was_ahead_stays_expired() -> None:
    assert after(10, 10_000, 11).expired_to == Position(1, 0)


def test_who_has_expired_for_one_of_two_has_expired() -> None:
    later, earlier = after(0, 5, 30), after(0)
    assert later.expired_to == Position(1, 1)
    earlier.learn(later)
    assert earlier.expired_to == Position(1, 1)


def test_whoever_goes_on_from_marks_that_were_kept_knows_who_has_expired() -> None:
    times, restored = after(0, 5, 30, 31), LogTimes(DAY_MS)
    restored.go_on(times.marks)
    assert restored.expired_to == times.expired_to == Position(1, 1)


def test_it_goes_on_from_what_another_has_noted() -> None:
    times = after(0, 2)
    times.go_on([Mark(Position(1, 0), 0), Mark(Position(1, 1), HOUR_MS), Mark(Position(1, 9), 25 * HOUR_MS)])
    assert times.expired_to == Position(1, 0)
    assert times.marks[-1] == Mark(Position(1, 9), 25 * HOUR_MS)
