"""Entries that take long to read, and those behind them."""

from __future__ import annotations

import threading

import pytest

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.partition.log import large_entries
from kafka_sidecar.partition.log import unfolding as unfolding_
from kafka_sidecar.partition.log.entries import MAX_BATCHES, read_entry
from kafka_sidecar.partition.log.large_entries import (
    LARGE_BATCH,
    LARGE_COMPRESSED,
    LARGE_MESSAGES,
    LARGE_METADATA,
    MANY_BATCHES,
    SHORT_METADATA,
    LargeEntries,
    unfolded_size,
)
from kafka_sidecar.partition.log.unfolding import unfolding
from kafka_sidecar.pulsar.codecs import compress
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.turns import longest_turn

ZSTD = 3
MANY = 100_000
MOST_TURN_SECONDS = 0.05


def native(number: int, messages: int = 1, payload: bytes | None = None) -> RawEntry:
    """Of empty messages, which shrink to a thousandth."""
    head = SingleMessageMetadata(payload_size=0).SerializeToString()
    data = (len(head).to_bytes(4, "big") + head) * messages
    metadata = MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=messages)
    metadata.compression, metadata.uncompressed_size = ZSTD, len(data)
    stored = compress(ZSTD, data) if payload is None else payload
    return RawEntry(
        Position(1, number), number * MANY + messages - 1, 1, metadata.SerializePartialToString(), memoryview(stored)
    )


class Reader:
    def __init__(self) -> None:
        self.entries: list[RawEntry] = []
        self.ended: PulsarError | None = None
        self.delays = 0

    def on_entry(self, entry: RawEntry) -> None:
        read_entry(entry)
        self.entries.append(entry)

    def on_end(self, reason: PulsarError) -> None:
        self.ended = reason

    def on_delayed(self) -> None:
        self.delays += 1

    def on_active(self, active: bool) -> None: ...


async def test_small_ones_are_handed_on_at_once() -> None:
    reader = Reader()
    entries = LargeEntries(reader)
    given = [native(number, LARGE_MESSAGES) for number in range(3)]
    for entry in given:
        entries.on_entry(entry)
    assert reader.entries == given


async def test_a_large_one_does_not_hold_the_loop_and_is_not_overtaken() -> None:
    reader, held = Reader(), list[int]()
    unfolding().hold = held.append
    entries = LargeEntries(reader)
    given = [native(0), native(1, MANY), native(2), native(3, MANY), native(4)]
    assert len(given[1].payload) < 500

    async def read() -> None:
        for entry in given:
            entries.on_entry(entry)
        assert reader.entries == given[:1]
        await until(lambda: len(reader.entries) == len(given))

    longest, _ = await longest_turn(read())
    assert longest < MOST_TURN_SECONDS, "of processor time"
    assert reader.entries == given
    assert sum(held) == 0 < max(held), "what it takes is counted meanwhile"


async def test_one_that_can_not_be_read_is_told_so_in_its_turn() -> None:
    told: list[str] = []

    class Tells(Reader):
        def on_entry(self, entry: RawEntry) -> None:
            try:
                super().on_entry(entry)
            except EntryUnreadable:
                told.append(f"{entry.position}")

    reader = Tells()
    entries = LargeEntries(reader)
    entries.on_entry(native(0, MANY, b"\xff" * 50))
    entries.on_entry(native(1))
    await until(lambda: reader.entries)
    assert (told, [entry.position.entry for entry in reader.entries]) == (["1:0"], [1])


@pytest.mark.parametrize("closes", [True, False], ids=["the reader closes it", "its connection ends"])
async def test_when_it_is_over_nothing_more_is_handed_on(closes: bool) -> None:
    reader = Reader()
    entries = LargeEntries(reader)
    entries.on_entry(native(0, MANY))
    entries.on_entry(native(1))
    if closes:
        entries.close()
    else:
        entries.on_end(Unavailable("cut"))
        assert str(reader.ended) == "cut"
    entries.on_entry(native(2))
    await until(lambda: entries._handing_on is None)
    assert reader.entries == []


async def test_where_too_much_waits_the_reader_begins_again_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the large one: it would never come further."""
    given = [native(0, MANY), *(native(number) for number in range(1, 10))]
    monkeypatch.setattr(
        large_entries, "MOST_WAITING_BYTES", sum(len(entry.payload) + len(entry.metadata) for entry in given[:4])
    )
    reader = Reader()
    entries = LargeEntries(reader)
    for entry in given:
        entries.on_entry(entry)
    await until(lambda: reader.ended is not None)
    assert reader.entries == given[:4]
    entries.on_entry(native(10))
    assert reader.entries == given[:4], "what comes behind a gap would be taken for the next"


async def test_a_reader_hears_that_it_waits_for_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfolding_, "DELAY_SECONDS", 0.01)
    may_go_on = threading.Event()

    def waits(entry: RawEntry) -> None:
        assert may_go_on.wait(10)

    monkeypatch.setattr(large_entries, "read_beforehand", waits)
    reader = Reader()
    entries = LargeEntries(reader)
    entries.on_entry(native(0, MANY))
    await until(lambda: reader.delays > 1)
    may_go_on.set()
    await until(lambda: reader.entries)


async def test_a_reader_that_does_not_wait_hears_nothing() -> None:
    reader = Reader()
    LargeEntries(reader).on_entry(native(0, LARGE_MESSAGES + 1))
    await until(lambda: reader.entries)
    assert reader.delays == 0


async def test_nothing_is_read_for_who_has_gone() -> None:
    first, second = Reader(), Reader()
    closed = LargeEntries(second)
    LargeEntries(first).on_entry(native(0, MANY))
    entry = native(1, MANY)
    closed.on_entry(entry)
    closed.close()
    await until(lambda: first.entries)
    await until(lambda: closed._handing_on is None)
    assert entry.content is None


def test_what_has_to_be_unfolded_is_told_by_the_metadata() -> None:
    assert unfolded_size(native(0, LARGE_MESSAGES)) == 0
    assert unfolded_size(native(0, LARGE_MESSAGES + 1)) > 0
    assert unfolded_size(native(0, LARGE_MESSAGES + 1), headers_alone=True) > 0, (
        "its greatest time stands in its messages"
    )
    of_a_sidecar = MessageMetadata(producer_name=b"kafka-sidecar-x", num_messages_in_batch=MANY)
    of_a_sidecar.properties.add(key=b"kafka.batch", value=b"7 0 0 1000")
    known = RawEntry(Position(1, 0), 1, 1, of_a_sidecar.SerializePartialToString(), memoryview(b""))
    assert unfolded_size(known, headers_alone=True) == 0 < unfolded_size(known)
    assert unfolded_size(RawEntry(Position(1, 0), 1, 1, bytes(LARGE_METADATA + 1), memoryview(b""))) > 0
    of_kafka = MessageMetadata(num_messages_in_batch=MANY)
    of_kafka.properties.add(key=b"entry.format", value=b"kafka")
    entry = RawEntry(Position(1, 0), 1, 1, of_kafka.SerializePartialToString(), memoryview(b""))
    assert unfolded_size(entry) == 0
    assert unfolded_size(RawEntry(Position(1, 0), 1, 1, b"\xff\xff", memoryview(b""))) == 0


@pytest.mark.parametrize("of", ["kafka", "a part of a message", "encrypted"])
def test_bytes_that_are_no_batches_are_small(of: str) -> None:
    """An error here would end the reader, again and again."""
    metadata = MessageMetadata(producer_name=b"native", num_chunks_from_msg=3 if of == "a part of a message" else 0)
    if of == "kafka":
        metadata.properties.add(key=b"entry.format", value=b"kafka")
    elif of == "encrypted":
        metadata.encryption_keys.add(key=b"k", value=b"v")
    for byte in (0, 2, 0xBA, 0xFF):
        payload = memoryview(bytes([byte]) * 1_000_000)
        assert unfolded_size(RawEntry(Position(1, 0), 0, 1, metadata.SerializePartialToString(), payload)) == 0


def test_whatever_a_writer_says_it_counts() -> None:
    """A negative count and a size that is as large made nothing of it once."""
    metadata = MessageMetadata(num_messages_in_batch=-268_000, uncompressed_size=134_000_000, compression=ZSTD)
    assert unfolded_size(RawEntry(Position(1, 0), 1, 1, metadata.SerializePartialToString(), memoryview(b""))) > 0


@pytest.mark.parametrize("count", [MANY_BATCHES, MANY_BATCHES + 1])
def test_an_entry_of_very_many_batches_is_large(count: int) -> None:
    metadata = MessageMetadata(num_messages_in_batch=count)
    metadata.properties.add(key=b"entry.format", value=b"kafka")
    entry = RawEntry(Position(1, 0), 1, 1, metadata.SerializePartialToString(), memoryview(bytes(batch(b"v")) * count))
    assert (unfolded_size(entry) > 0) == (count > MANY_BATCHES)


def plain(messages: int, size: int, properties: int = 0) -> RawEntry:
    """Without compression, and with a size that says nothing."""
    head = SingleMessageMetadata(payload_size=size)
    for _ in range(properties):
        head.properties.add(key=b"", value=b"")
    one = head.SerializeToString()
    data = (len(one).to_bytes(4, "big") + one + bytes(size)) * messages
    metadata = MessageMetadata(num_messages_in_batch=messages, uncompressed_size=0)
    return RawEntry(Position(1, 0), messages - 1, 1, metadata.SerializePartialToString(), memoryview(data))


@pytest.mark.parametrize("count", [MAX_BATCHES, MAX_BATCHES + 1])
def test_an_entry_of_more_batches_than_anybody_writes_is_not_looked_into(count: int) -> None:
    metadata = MessageMetadata(producer_name=b"native", num_messages_in_batch=count)
    metadata.properties.add(key=b"entry.format", value=b"kafka")
    entry = RawEntry(
        Position(1, 0), count - 1, 1, metadata.SerializePartialToString(), memoryview(bytes(batch(b"v")) * count)
    )
    if count > MAX_BATCHES:
        with pytest.raises(EntryUnreadable, match="no more than"):
            read_entry(entry)
    else:
        assert read_entry(entry).offset_count == count


def test_few_messages_are_small_whatever_their_values_and_large_by_their_properties() -> None:
    assert unfolded_size(plain(1, 5_000_000)) == 0
    assert unfolded_size(plain(4, LARGE_BATCH)) == 0
    assert unfolded_size(plain(1, 5_000_000, SHORT_METADATA)) > 0
    assert unfolded_size(plain(100, LARGE_BATCH // 100)) > 0
    assert unfolded_size(plain(100, LARGE_BATCH // 200)) == 0


@pytest.mark.parametrize("size", [LARGE_COMPRESSED, LARGE_COMPRESSED + 1])
def test_a_single_message_is_large_if_it_unfolds_to_much(size: int) -> None:
    for compression in (0, ZSTD):
        metadata = MessageMetadata(uncompressed_size=size, compression=compression)
        entry = RawEntry(Position(1, 0), 0, 1, metadata.SerializePartialToString(), memoryview(b""))
        assert (unfolded_size(entry) > 0) == (compression == ZSTD and size > LARGE_COMPRESSED)


async def test_what_waits_is_counted_until_it_goes_on_or_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    held = list[int]()
    monkeypatch.setattr(unfolding(), "hold", held.append)
    first, second = Reader(), Reader()
    goes_on, closes = LargeEntries(first), LargeEntries(second)
    for entries in (goes_on, closes):
        entries.on_entry(native(0, MANY))
        entries.on_entry(native(1))
    assert sum(held) > 0
    closes.close()
    await until(lambda: len(first.entries) == 2)
    await until(lambda: closes._handing_on is None)
    assert sum(held) == 0
