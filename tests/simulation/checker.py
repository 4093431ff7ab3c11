"""What was told, against the log folded anew by the reference. Raises Violation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tests.simulation.history import History, Violation
from tests.simulation.reference import Reference


def check(history: History, reference: Reference, log_start: int) -> None:
    places: dict[bytes, list[int]] = defaultdict(list)
    for offset, value in reference.values.items():
        places[value].append(offset)
    _check_acknowledged(history, places)
    _check_seen(history, reference)
    _check_order(reference)
    unread = [offset for offset in reference.values if offset >= log_start and offset not in history.seen.values]
    if unread:
        raise Violation(f"nobody was given the records at {unread[:10]}")
    _check_committed(history, reference, log_start)


def _check_acknowledged(history: History, places: Mapping[bytes, list[int]]) -> None:
    for value, offsets in history.acknowledged.items():
        found = places.get(value, [])
        if not found:
            raise Violation(f"{value!r} was acknowledged at {offsets}, and is not in the log")
        if len(found) > 1 and not value.startswith(b"plain"):
            raise Violation(f"{value!r} is in the log at {found}")
        wrong = [offset for offset in offsets if offset not in found]
        if wrong:
            raise Violation(f"{value!r} was acknowledged at {wrong}, and is at {found}")


def _check_seen(history: History, reference: Reference) -> None:
    for offset, value in history.seen.values.items():
        expected = reference.values.get(offset)
        if offset < reference.end and expected != value and not (expected is None and history.lost_its_reason(offset)):
            raise Violation(f"a consumer found {value!r} at offset {offset}, where {expected!r} is")


def _check_committed(history: History, reference: Reference, log_start: int) -> None:
    given = history.seen_committed.values
    if not given:
        return
    for offset, value in reference.values.items():
        is_given = given.get(offset) is not None
        if offset >= log_start and is_given != history.is_for_all(value):
            raise Violation(f"{value!r} at offset {offset} is {'' if is_given else 'not '}given to consumers of read_committed")


def _check_order(reference: Reference) -> None:
    last: dict[bytes, int] = {}
    for offset in sorted(reference.values):
        producer, _, sequence = reference.values[offset].partition(b"/")
        if producer.startswith(b"plain"):
            continue
        if int(sequence) <= last.get(producer, -1):
            raise Violation(f"{reference.values[offset]!r} at offset {offset} comes after {last[producer]}")
        last[producer] = int(sequence)
