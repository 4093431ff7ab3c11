from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TimeIndex(_message.Message):
    __slots__ = ("base_offsets", "ledgers", "entries", "greatest_timestamps", "stretch_bytes", "bytes_in_last", "begin_ledger", "begin_entry", "last_ledger", "last_entry", "next_offset")
    BASE_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LEDGERS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    GREATEST_TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    STRETCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    BYTES_IN_LAST_FIELD_NUMBER: _ClassVar[int]
    BEGIN_LEDGER_FIELD_NUMBER: _ClassVar[int]
    BEGIN_ENTRY_FIELD_NUMBER: _ClassVar[int]
    LAST_LEDGER_FIELD_NUMBER: _ClassVar[int]
    LAST_ENTRY_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    base_offsets: _containers.RepeatedScalarFieldContainer[int]
    ledgers: _containers.RepeatedScalarFieldContainer[int]
    entries: _containers.RepeatedScalarFieldContainer[int]
    greatest_timestamps: _containers.RepeatedScalarFieldContainer[int]
    stretch_bytes: int
    bytes_in_last: int
    begin_ledger: int
    begin_entry: int
    last_ledger: int
    last_entry: int
    next_offset: int
    def __init__(self, base_offsets: _Optional[_Iterable[int]] = ..., ledgers: _Optional[_Iterable[int]] = ..., entries: _Optional[_Iterable[int]] = ..., greatest_timestamps: _Optional[_Iterable[int]] = ..., stretch_bytes: _Optional[int] = ..., bytes_in_last: _Optional[int] = ..., begin_ledger: _Optional[int] = ..., begin_entry: _Optional[int] = ..., last_ledger: _Optional[int] = ..., last_entry: _Optional[int] = ..., next_offset: _Optional[int] = ...) -> None: ...

class Fold(_message.Message):
    __slots__ = ("first_offset", "next_offset", "last_ledger", "last_entry", "producers", "writers", "transactions", "began_within", "began_ledger", "began_entry", "known")
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_LEDGER_FIELD_NUMBER: _ClassVar[int]
    LAST_ENTRY_FIELD_NUMBER: _ClassVar[int]
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    BEGAN_WITHIN_FIELD_NUMBER: _ClassVar[int]
    BEGAN_LEDGER_FIELD_NUMBER: _ClassVar[int]
    BEGAN_ENTRY_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    first_offset: int
    next_offset: int
    last_ledger: int
    last_entry: int
    producers: _containers.RepeatedCompositeFieldContainer[Producer]
    writers: _containers.RepeatedCompositeFieldContainer[Writer]
    transactions: Transactions
    began_within: bool
    began_ledger: int
    began_entry: int
    known: Producers
    def __init__(self, first_offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., last_ledger: _Optional[int] = ..., last_entry: _Optional[int] = ..., producers: _Optional[_Iterable[_Union[Producer, _Mapping]]] = ..., writers: _Optional[_Iterable[_Union[Writer, _Mapping]]] = ..., transactions: _Optional[_Union[Transactions, _Mapping]] = ..., began_within: _Optional[bool] = ..., began_ledger: _Optional[int] = ..., began_entry: _Optional[int] = ..., known: _Optional[_Union[Producers, _Mapping]] = ...) -> None: ...

class Producer(_message.Message):
    __slots__ = ("id", "epoch", "last_sequence", "not_conclusive", "at_ledger", "at_entry", "max_timestamp", "batches")
    ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NOT_CONCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    AT_LEDGER_FIELD_NUMBER: _ClassVar[int]
    AT_ENTRY_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    id: int
    epoch: int
    last_sequence: int
    not_conclusive: bool
    at_ledger: int
    at_entry: int
    max_timestamp: int
    batches: _containers.RepeatedCompositeFieldContainer[Batch]
    def __init__(self, id: _Optional[int] = ..., epoch: _Optional[int] = ..., last_sequence: _Optional[int] = ..., not_conclusive: _Optional[bool] = ..., at_ledger: _Optional[int] = ..., at_entry: _Optional[int] = ..., max_timestamp: _Optional[int] = ..., batches: _Optional[_Iterable[_Union[Batch, _Mapping]]] = ...) -> None: ...

class Producers(_message.Message):
    __slots__ = ("next_offset", "last_ledger", "last_entry", "began_within", "began_ledger", "began_entry", "pages", "writers", "unjudged", "mark_ledgers", "mark_entries", "mark_times", "begins_expired")
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_LEDGER_FIELD_NUMBER: _ClassVar[int]
    LAST_ENTRY_FIELD_NUMBER: _ClassVar[int]
    BEGAN_WITHIN_FIELD_NUMBER: _ClassVar[int]
    BEGAN_LEDGER_FIELD_NUMBER: _ClassVar[int]
    BEGAN_ENTRY_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    UNJUDGED_FIELD_NUMBER: _ClassVar[int]
    MARK_LEDGERS_FIELD_NUMBER: _ClassVar[int]
    MARK_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MARK_TIMES_FIELD_NUMBER: _ClassVar[int]
    BEGINS_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    next_offset: int
    last_ledger: int
    last_entry: int
    began_within: bool
    began_ledger: int
    began_entry: int
    pages: _containers.RepeatedScalarFieldContainer[bytes]
    writers: _containers.RepeatedCompositeFieldContainer[Writer]
    unjudged: _containers.RepeatedCompositeFieldContainer[UnjudgedBatch]
    mark_ledgers: _containers.RepeatedScalarFieldContainer[int]
    mark_entries: _containers.RepeatedScalarFieldContainer[int]
    mark_times: _containers.RepeatedScalarFieldContainer[int]
    begins_expired: bool
    def __init__(self, next_offset: _Optional[int] = ..., last_ledger: _Optional[int] = ..., last_entry: _Optional[int] = ..., began_within: _Optional[bool] = ..., began_ledger: _Optional[int] = ..., began_entry: _Optional[int] = ..., pages: _Optional[_Iterable[bytes]] = ..., writers: _Optional[_Iterable[_Union[Writer, _Mapping]]] = ..., unjudged: _Optional[_Iterable[_Union[UnjudgedBatch, _Mapping]]] = ..., mark_ledgers: _Optional[_Iterable[int]] = ..., mark_entries: _Optional[_Iterable[int]] = ..., mark_times: _Optional[_Iterable[int]] = ..., begins_expired: _Optional[bool] = ...) -> None: ...

class UnjudgedBatch(_message.Message):
    __slots__ = ("producer_id", "epoch", "first_sequence", "last_sequence", "base_offset", "ledger", "entry", "max_timestamp", "folded_to_ledger", "folded_to_entry", "known_epoch", "known_sequence", "writer", "writer_sequence", "sent_again")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    FOLDED_TO_LEDGER_FIELD_NUMBER: _ClassVar[int]
    FOLDED_TO_ENTRY_FIELD_NUMBER: _ClassVar[int]
    KNOWN_EPOCH_FIELD_NUMBER: _ClassVar[int]
    KNOWN_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    WRITER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SENT_AGAIN_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    epoch: int
    first_sequence: int
    last_sequence: int
    base_offset: int
    ledger: int
    entry: int
    max_timestamp: int
    folded_to_ledger: int
    folded_to_entry: int
    known_epoch: int
    known_sequence: int
    writer: bytes
    writer_sequence: int
    sent_again: bool
    def __init__(self, producer_id: _Optional[int] = ..., epoch: _Optional[int] = ..., first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., base_offset: _Optional[int] = ..., ledger: _Optional[int] = ..., entry: _Optional[int] = ..., max_timestamp: _Optional[int] = ..., folded_to_ledger: _Optional[int] = ..., folded_to_entry: _Optional[int] = ..., known_epoch: _Optional[int] = ..., known_sequence: _Optional[int] = ..., writer: _Optional[bytes] = ..., writer_sequence: _Optional[int] = ..., sent_again: _Optional[bool] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("first_sequence", "last_sequence", "base_offset", "ledger", "entry")
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    first_sequence: int
    last_sequence: int
    base_offset: int
    ledger: int
    entry: int
    def __init__(self, first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., base_offset: _Optional[int] = ..., ledger: _Optional[int] = ..., entry: _Optional[int] = ...) -> None: ...

class Writer(_message.Message):
    __slots__ = ("name", "last_sequence")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    last_sequence: int
    def __init__(self, name: _Optional[bytes] = ..., last_sequence: _Optional[int] = ...) -> None: ...

class Transactions(_message.Message):
    __slots__ = ("open_producers", "open_numbers", "open_first_offsets", "ended_producers", "ended_numbers", "producers", "aborted_producers", "aborted_first_offsets", "aborted_last_offsets", "aborted_stable_offsets", "hidden_offsets", "known_from_ledger", "known_from_entry", "left_producers", "left_numbers", "left_first_offsets", "left_behind", "undone_producers", "undone_first_offsets", "undone_behind")
    OPEN_PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    OPEN_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIRST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    ENDED_PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    ENDED_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    ABORTED_PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    ABORTED_FIRST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    ABORTED_LAST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    ABORTED_STABLE_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FROM_LEDGER_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FROM_ENTRY_FIELD_NUMBER: _ClassVar[int]
    LEFT_PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    LEFT_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIRST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LEFT_BEHIND_FIELD_NUMBER: _ClassVar[int]
    UNDONE_PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    UNDONE_FIRST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    UNDONE_BEHIND_FIELD_NUMBER: _ClassVar[int]
    open_producers: _containers.RepeatedScalarFieldContainer[int]
    open_numbers: _containers.RepeatedScalarFieldContainer[int]
    open_first_offsets: _containers.RepeatedScalarFieldContainer[int]
    ended_producers: _containers.RepeatedScalarFieldContainer[int]
    ended_numbers: _containers.RepeatedScalarFieldContainer[int]
    producers: _containers.RepeatedScalarFieldContainer[int]
    aborted_producers: _containers.RepeatedScalarFieldContainer[int]
    aborted_first_offsets: _containers.RepeatedScalarFieldContainer[int]
    aborted_last_offsets: _containers.RepeatedScalarFieldContainer[int]
    aborted_stable_offsets: _containers.RepeatedScalarFieldContainer[int]
    hidden_offsets: _containers.RepeatedScalarFieldContainer[int]
    known_from_ledger: int
    known_from_entry: int
    left_producers: _containers.RepeatedScalarFieldContainer[int]
    left_numbers: _containers.RepeatedScalarFieldContainer[int]
    left_first_offsets: _containers.RepeatedScalarFieldContainer[int]
    left_behind: _containers.RepeatedScalarFieldContainer[int]
    undone_producers: _containers.RepeatedScalarFieldContainer[int]
    undone_first_offsets: _containers.RepeatedScalarFieldContainer[int]
    undone_behind: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, open_producers: _Optional[_Iterable[int]] = ..., open_numbers: _Optional[_Iterable[int]] = ..., open_first_offsets: _Optional[_Iterable[int]] = ..., ended_producers: _Optional[_Iterable[int]] = ..., ended_numbers: _Optional[_Iterable[int]] = ..., producers: _Optional[_Iterable[int]] = ..., aborted_producers: _Optional[_Iterable[int]] = ..., aborted_first_offsets: _Optional[_Iterable[int]] = ..., aborted_last_offsets: _Optional[_Iterable[int]] = ..., aborted_stable_offsets: _Optional[_Iterable[int]] = ..., hidden_offsets: _Optional[_Iterable[int]] = ..., known_from_ledger: _Optional[int] = ..., known_from_entry: _Optional[int] = ..., left_producers: _Optional[_Iterable[int]] = ..., left_numbers: _Optional[_Iterable[int]] = ..., left_first_offsets: _Optional[_Iterable[int]] = ..., left_behind: _Optional[_Iterable[int]] = ..., undone_producers: _Optional[_Iterable[int]] = ..., undone_first_offsets: _Optional[_Iterable[int]] = ..., undone_behind: _Optional[_Iterable[int]] = ...) -> None: ...
