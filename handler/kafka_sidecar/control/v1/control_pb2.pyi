from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PingRequest(_message.Message):
    __slots__ = ("to", "sender", "serves")
    TO_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    SERVES_FIELD_NUMBER: _ClassVar[int]
    to: str
    sender: str
    serves: bool
    def __init__(self, to: _Optional[str] = ..., sender: _Optional[str] = ..., serves: _Optional[bool] = ...) -> None: ...

class PingResponse(_message.Message):
    __slots__ = ("serves", "silent", "missing")
    SERVES_FIELD_NUMBER: _ClassVar[int]
    SILENT_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    serves: bool
    silent: _containers.RepeatedScalarFieldContainer[str]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, serves: _Optional[bool] = ..., silent: _Optional[_Iterable[str]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class WarmRequest(_message.Message):
    __slots__ = ("to", "partitions")
    TO_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    to: str
    partitions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, to: _Optional[str] = ..., partitions: _Optional[_Iterable[str]] = ...) -> None: ...

class WarmResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ForwardRequest(_message.Message):
    __slots__ = ("to", "frame", "peer", "namespace", "load_wait_ms")
    TO_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LOAD_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    to: str
    frame: bytes
    peer: str
    namespace: str
    load_wait_ms: int
    def __init__(self, to: _Optional[str] = ..., frame: _Optional[bytes] = ..., peer: _Optional[str] = ..., namespace: _Optional[str] = ..., load_wait_ms: _Optional[int] = ...) -> None: ...

class TopicsDeletedRequest(_message.Message):
    __slots__ = ("to", "topics", "topic_ids")
    TO_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_IDS_FIELD_NUMBER: _ClassVar[int]
    to: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    topic_ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, to: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., topic_ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class TopicsDeletedResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ForwardResponse(_message.Message):
    __slots__ = ("frame",)
    FRAME_FIELD_NUMBER: _ClassVar[int]
    frame: bytes
    def __init__(self, frame: _Optional[bytes] = ...) -> None: ...

class VerifyTransactionRequest(_message.Message):
    __slots__ = ("to", "transactional_id", "producer_id", "producer_epoch", "topic", "partition", "adds_partition", "namespace")
    TO_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ADDS_PARTITION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    to: str
    transactional_id: str
    producer_id: int
    producer_epoch: int
    topic: str
    partition: int
    adds_partition: bool
    namespace: str
    def __init__(self, to: _Optional[str] = ..., transactional_id: _Optional[str] = ..., producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., adds_partition: _Optional[bool] = ..., namespace: _Optional[str] = ...) -> None: ...

class VerifyTransactionResponse(_message.Message):
    __slots__ = ("error_code", "number")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    number: int
    def __init__(self, error_code: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class EndedTransactionsRequest(_message.Message):
    __slots__ = ("to", "producer_ids")
    TO_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_IDS_FIELD_NUMBER: _ClassVar[int]
    to: str
    producer_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, to: _Optional[str] = ..., producer_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class EndedTransactionsResponse(_message.Message):
    __slots__ = ("producers",)
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    producers: _containers.RepeatedCompositeFieldContainer[EndedTransactions]
    def __init__(self, producers: _Optional[_Iterable[_Union[EndedTransactions, _Mapping]]] = ...) -> None: ...

class EndedTransactions(_message.Message):
    __slots__ = ("producer_id", "number", "marked_from")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MARKED_FROM_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    number: int
    marked_from: int
    def __init__(self, producer_id: _Optional[int] = ..., number: _Optional[int] = ..., marked_from: _Optional[int] = ...) -> None: ...

class EndOffsetsRequest(_message.Message):
    __slots__ = ("to", "partition", "producer_id", "number", "committed")
    TO_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    to: str
    partition: int
    producer_id: int
    number: int
    committed: bool
    def __init__(self, to: _Optional[str] = ..., partition: _Optional[int] = ..., producer_id: _Optional[int] = ..., number: _Optional[int] = ..., committed: _Optional[bool] = ...) -> None: ...

class EndOffsetsResponse(_message.Message):
    __slots__ = ("error_code",)
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    def __init__(self, error_code: _Optional[int] = ...) -> None: ...
