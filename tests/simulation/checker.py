"""What was told, against the log folded anew by the reference. Raises Violation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from kafka_sidecar.pulsar.entry import RawEntry
from tests.simulation.history import History, Seen, Violation
from tests.simulation.reference import Reference
from tests.simulation.stored import batches_of, values_in

SENT_AGAIN_AS_NEW: Final = b"plain"
# Of producers without an id, what is on its way together may change places.
WITHOUT_ID: Final = (b"plain", b"forgetful", b"native")


def check(history: History, reference: Reference, log_start: int) -> None:
    check_told(history, reference)
    unread = [offset for offset in reference.values if offset >= log_start and offset not in history.seen.values]
    if unread:
        raise Violation(f"nobody was given the records at {unread[:10]}")
    _check_committed(history, reference, log_start)


def check_told(history: History, reference: Reference) -> None:
    """What was told so far, whether or not anybody has read the whole log."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for offset, value in reference.values.items():
        places[value].append(offset)
    _check_acknowledged(history, places)
    for seen in (history.seen, history.seen_committed):
        _check_seen(history, seen, reference)
    _check_order(reference)
    for offset, told in history.corrupt.items():
        if offset < reference.end and offset not in reference.unreadable:
            raise Violation(
                f"{told} was told that offset {offset} can't be read, where {reference.values.get(offset)!r} is"
            )


def _check_acknowledged(history: History, places: Mapping[bytes, list[int]]) -> None:
    for value, found in places.items():
        if len(found) > 1 and not value.startswith(SENT_AGAIN_AS_NEW):
            raise Violation(f"{value!r} is in the log at {found}")
    for value, offsets in history.acknowledged.items():
        found = places.get(value, [])
        if not found:
            raise Violation(f"{value!r} was acknowledged at {offsets}, and is not in the log")
        wrong = [offset for offset in offsets if offset not in found]
        if wrong:
            raise Violation(f"{value!r} was acknowledged at {wrong}, and is at {found}")


def check_late(history: History, entries: Iterable[RawEntry]) -> None:
    """What was acknowledged for a topic that was deleted meanwhile stands in that one, or in the one that has its name
    now.
    """
    places: dict[bytes, list[int]] = defaultdict(list)
    for entry in entries if history.acknowledged_late else ():
        for batch in batches_of(entry) if not entry.message_metadata.HasField("marker_type") else ():
            for number, value in enumerate(values_in(batch) if not batch.is_control else ()):
                places[value].append(batch.offset + number)
    for value, offsets in history.acknowledged_late.items():
        wrong = [offset for offset in offsets if offset not in places[value]]
        if wrong:
            raise Violation(
                f"{value!r} was acknowledged at {wrong} for a topic that is deleted, and is at {places[value]}"
            )


def _check_seen(history: History, seen: Seen, reference: Reference) -> None:
    for offset, value in seen.values.items():
        expected = reference.values.get(offset)
        if offset in reference.strays:
            expected = None if value is None else reference.strays[offset]
        is_left_out = (
            value is None
            and seen is history.seen_committed
            and expected is not None
            and not history.is_for_all(expected)
        )
        if offset >= reference.end or expected == value or is_left_out:
            continue
        if expected is not None or not history.lost_its_reason(offset):
            raise Violation(f"a consumer found {value!r} at offset {offset}, where {expected!r} is")


def _check_committed(history: History, reference: Reference, log_start: int) -> None:
    given = history.seen_committed.values
    if not given:
        return
    for offset, value in reference.values.items():
        is_given = given.get(offset) is not None
        if offset >= log_start and is_given != history.is_for_all(value):
            raise Violation(
                f"{value!r} at offset {offset} is {'' if is_given else 'not '}given to consumers of read_committed"
            )


def _check_order(reference: Reference) -> None:
    last: dict[bytes, int] = {}
    for offset in sorted(reference.values):
        producer, _, sequence = reference.values[offset].partition(b"/")
        if producer.startswith(WITHOUT_ID):
            continue
        if int(sequence) <= last.get(producer, -1):
            raise Violation(f"{reference.values[offset]!r} at offset {offset} comes after {last[producer]}")
        last[producer] = int(sequence)
