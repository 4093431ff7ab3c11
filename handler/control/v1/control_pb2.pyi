from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ForwardRequest(_message.Message):
    __slots__ = ("to", "frame", "peer")
    TO_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    to: str
    frame: bytes
    peer: str
    def __init__(self, to: _Optional[str] = ..., frame: _Optional[bytes] = ..., peer: _Optional[str] = ...) -> None: ...

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
