"""Batches on their way: in entries that were sent, and those that wait to share the next one. Pure.

    add ──▶ waiting ── next_entry ──▶ entries, by writer sequence ── remove ──▶ the requests' answers

Each batch counts as one writer sequence, and an entry has that of its first. So an entry that the broker refuses as a
whole can be taken apart, and its batches still come before those that were numbered behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from kafka_sidecar.partition.fold.producers import is_later
from kafka_sidecar.partition.log.basis import NO_TRANSACTION, UNKNOWN_PRODUCER, Basis, KnownProducer
from kafka_sidecar.partition.log.entries import Content
from kafka_sidecar.partition.write.append import Append, expire
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import NO_PRODUCER_ID, all_batches, read_header, split_batches

# Each batch adds up to 42 bytes to the basis property of its entry: two decimal numbers of at most 32 bits and one of
# 64 bits.
BASIS_BYTES: Final = 42
# CommandSend.num_messages, which holds the number of offsets of an entry, is an int32.
MAX_OFFSETS: Final = 2**31 - 1


class EntryInFlight:
    """One batch, or several that waited at the same time. The bytes of several are the entry's, and no longer the
    appends'.
    """

    __slots__ = (
        "appends",
        "basis",
        "data",
        "encoded",
        "has_producer",
        "log_append_time",
        "offset_count",
        "sent_again",
        "sent_at",
        "transactions",
        "was_sent",
    )

    def __init__(self, appends: Sequence[Append]) -> None:
        self.appends = appends
        if len(appends) == 1:
            append = appends[0]
            self.data = append.data
            self.offset_count = append.offset_count
            self.has_producer = append.producer_id != NO_PRODUCER_ID
            self.transactions: Sequence[int] = () if append.transaction == NO_TRANSACTION else (append.transaction,)
            self.encoded = append.encoded
            self.log_append_time = append.encoded is not None and append.encoded.log_append_time
        else:
            self.data = bytearray().join([append.data for append in appends])
            self.offset_count = sum([append.offset_count for append in appends])
            self.has_producer = any([append.has_producer for append in appends])
            numbers = [append.transaction for append in appends]
            self.transactions = numbers if any([number != NO_TRANSACTION for number in numbers]) else ()
            for append in appends:
                append.data = b""
            self.encoded = None
            self.log_append_time = False
        self.basis: tuple[bytes, bytes] | None = None  # the basis property of the last SEND, as key and value
        self.sent_at = 0.0  # time of the SEND; 0 while no receipt is awaited
        self.was_sent = False
        self.sent_again = False

    @property
    def is_awaited(self) -> bool:
        """Whether a request still waits for any of it."""
        return any(append.is_awaited for append in self.appends)

    def content(self, writer: bytes, writer_sequence: int) -> Content:
        """Its content as the log has it, for a fold that has to judge it."""
        basis = None if self.basis is None else Basis.decode(self.basis[1])
        batches = all_batches(self.data)
        return Content(
            self.data, batches, self.offset_count, writer, writer_sequence, basis, self.transactions, self.sent_again
        )


class BatchesInFlight:
    def __init__(self) -> None:
        self.entries: dict[int, EntryInFlight] = {}  # by writer sequence, in order
        self.waiting: deque[Append] = deque()
        # By producer id: first the batches in entries, then those that wait.
        self._by_producer: dict[int, deque[Append]] = {}
        self._next_writer_sequence = 0

    def __len__(self) -> int:
        return sum([len(entry.appends) for entry in self.entries.values()]) + len(self.waiting)

    def __bool__(self) -> bool:
        return bool(self.entries or self.waiting)

    def __iter__(self) -> Iterator[Append]:
        for entry in self.entries.values():
            yield from entry.appends
        yield from self.waiting

    def last_of(self, producer_id: int) -> Append | None:
        """The batch that the producer's next one has to follow."""
        in_flight = self._by_producer.get(producer_id)
        return in_flight[-1] if in_flight else None

    def before_first(self, append: Append) -> KnownProducer:
        """What the producer's last batch was before all that are under way, for a producer that is not known otherwise.

        It may begin anywhere. But what is sent behind its first batch must not count where that one does not land.
        """
        first = next(one for one in self._by_producer[append.producer_id] if one.epoch == append.epoch)
        if first is append:
            return UNKNOWN_PRODUCER
        return KnownProducer(first.epoch, first.first_sequence - 1)

    def is_missing_before(self, append: Append) -> bool:
        """Whether an earlier batch of the same epoch has yet to come to the log."""
        in_flight = self._by_producer.get(append.producer_id, ())
        first = next((pending for pending in in_flight if pending.epoch == append.epoch), None)
        return first is not None and is_later(append.first_sequence, first.first_sequence)

    def retry_target(self, append: Append) -> Append | None:
        """The batch that `append` is a client's retry of."""
        in_flight = self._by_producer.get(append.producer_id, ())
        return next((pending for pending in in_flight if pending.is_retry_of(append)), None)

    def add(self, append: Append) -> None:
        """It waits for an entry now."""
        self._remember(append)
        self.waiting.append(append)

    def add_alone(self, append: Append) -> tuple[int, EntryInFlight]:
        """It gets an entry of its own at once: nothing waits."""
        self._remember(append)
        writer_sequence = self._next_writer_sequence
        self._next_writer_sequence = writer_sequence + 1
        entry = self.entries[writer_sequence] = EntryInFlight((append,))
        return writer_sequence, entry

    def _remember(self, append: Append) -> None:
        producer_id = append.producer_id
        if producer_id != NO_PRODUCER_ID:
            in_flight = self._by_producer.get(producer_id)
            if in_flight is None:
                in_flight = self._by_producer[producer_id] = deque()
            in_flight.append(append)

    def next_entry(self, max_batches: int, max_bytes: int) -> tuple[int, EntryInFlight]:
        """Make an entry of those that have waited longest, and number it. At least one of them, however large."""
        waiting = self.waiting
        appends = [waiting.popleft()]
        size = len(appends[0].data) + BASIS_BYTES
        offset_count = appends[0].offset_count
        while waiting and len(appends) < max_batches and appends[0].encoded is None and waiting[0].encoded is None:
            size += len(waiting[0].data) + BASIS_BYTES
            offset_count += waiting[0].offset_count
            if size > max_bytes or offset_count > MAX_OFFSETS:
                break
            appends.append(waiting.popleft())
        writer_sequence = self._next_writer_sequence
        self._next_writer_sequence = writer_sequence + len(appends)
        entry = self.entries[writer_sequence] = EntryInFlight(appends)
        return writer_sequence, entry

    def remove(self, writer_sequence: int) -> EntryInFlight:
        """The entry is in the log, or never will be."""
        entry = self.entries.pop(writer_sequence)
        for append in entry.appends:
            self._forget(append)
        return entry

    def remove_abandoned(self) -> None:
        """Forget entries for which nobody waits any more, but for those that something follows which is waited for."""
        followed = {(append.producer_id, append.epoch) for append in self.waiting if append.is_awaited}
        for writer_sequence, entry in reversed(list(self.entries.items())):
            sequences = {(append.producer_id, append.epoch) for append in entry.appends if append.has_producer}
            if entry.is_awaited or followed & sequences:
                followed |= sequences
            else:
                self.remove(writer_sequence)

    def refuse_larger(self, max_bytes: int) -> None:
        """Refuse what no entry can hold, and with each what its producer wrote behind it: the log must not have a
        hole.
        """
        if any(max(len(entry.data), entry.appends[0].size) > max_bytes for entry in self.entries.values()):
            self.take_apart()
        elif all(append.size <= max_bytes for append in self.waiting):
            return
        missing: set[int] = set()
        for append in list(self):
            is_larger = append.size > max_bytes
            if is_larger or append.producer_id in missing:
                missing.add(append.producer_id)
                missing.discard(NO_PRODUCER_ID)
                self._take_out(append)
                append.refuse(ErrorCode.MESSAGE_TOO_LARGE if is_larger else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    def _take_out(self, append: Append) -> None:
        for writer_sequence, entry in self.entries.items():
            if entry.appends[0] is append:
                self.remove(writer_sequence)
                return
        self.waiting.remove(append)
        self._forget(append)

    def expire_waiting(self, now: float) -> set[int]:
        """Refuse those that were not sent in time, and with each what its producer wrote behind it. Returns their
        producers.
        """
        kept, late = expire(list(self.waiting), now)
        if len(kept) < len(self.waiting):
            numbers = set(map(id, kept))
            self._remove_waiting([append for append in self.waiting if id(append) not in numbers])
        return late

    def refuse_behind(self, append: Append, error: ErrorCode) -> None:
        """Refuse what a producer has under way behind a batch. What was sent may land nevertheless, and what waits is
        gone.
        """
        under_way = self._by_producer.get(append.producer_id, ())
        behind = [
            one for one in under_way if one.epoch != append.epoch or is_later(one.first_sequence, append.first_sequence)
        ]
        numbers = set(map(id, behind))
        self._remove_waiting([one for one in self.waiting if id(one) in numbers])
        for one in behind:
            one.refuse(error)

    def remove_all_waiting(self) -> list[Append]:
        return self._remove_waiting(list(self.waiting))

    def _remove_waiting(self, out: list[Append]) -> list[Append]:
        gone = set(map(id, out))
        self.waiting = deque([append for append in self.waiting if id(append) not in gone])
        for append in out:
            self._forget(append)
        return out

    def take_apart(self) -> None:
        """Each batch becomes an entry of its own, in the same place."""
        entries, self.entries = self.entries, {}
        for sequence, entry in entries.items():
            if len(entry.appends) == 1:
                self.entries[sequence] = entry
                continue
            for number, (append, (header, at)) in enumerate(zip(entry.appends, split_batches(entry.data), strict=True)):
                append.data = entry.data[at : at + header.size]
                part = self.entries[sequence + number] = EntryInFlight([append])
                part.was_sent = True

    def renumber_overtaken(self, reached: int) -> None:
        """Give new sequences to entries that a later one has overtaken in the log, where `reached` is the last.

        They were refused or dropped by the broker and can't land any more, for one connection keeps
        its order. Under their old sequence the fold (and a deduplicating broker) would take them for
        entries that were sent again.

        What the same producers wrote behind them follows, so that its order stays. All others keep their sequences, for
        their first tries may land yet: of a batch without a producer id only the sequence tells that it was sent again.
        """
        if not any(entry.was_sent and writer_sequence <= reached for writer_sequence, entry in self.entries.items()):
            return
        self.take_apart()  # else the batches that share an entry with an overtaken one would get new sequences too
        producers: set[int] = set()
        for writer_sequence, entry in list(self.entries.items()):
            producer_id = _producer_of(entry)
            if (entry.was_sent and writer_sequence <= reached) or producer_id in producers:
                producers.add(producer_id)
                producers.discard(NO_PRODUCER_ID)
                del self.entries[writer_sequence]
                self.entries[self._next_writer_sequence] = entry
                self._next_writer_sequence += 1

    def _forget(self, append: Append) -> None:
        producer_id = append.producer_id
        if producer_id == NO_PRODUCER_ID:
            return
        in_flight = self._by_producer[producer_id]
        if in_flight[0] is append:
            in_flight.popleft()
        else:
            in_flight.remove(append)
        if not in_flight:
            del self._by_producer[producer_id]


def _producer_of(entry: EntryInFlight) -> int:
    """Of an entry of one batch. A marker has no place in its producer's sequence, and ends what stands before it."""
    (append,) = entry.appends
    return read_header(entry.data).producer_id if append.is_marker else append.producer_id
