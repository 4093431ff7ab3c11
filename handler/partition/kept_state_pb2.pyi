from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

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
