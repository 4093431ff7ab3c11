from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FindMessageIdRequest(_message.Message):
    __slots__ = ("topic", "partition", "offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class FindMessageIdResponse(_message.Message):
    __slots__ = ("message_id", "base_offset", "offset_count")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    OFFSET_COUNT_FIELD_NUMBER: _ClassVar[int]
    message_id: MessageId
    base_offset: int
    offset_count: int
    def __init__(self, message_id: _Optional[_Union[MessageId, _Mapping]] = ..., base_offset: _Optional[int] = ..., offset_count: _Optional[int] = ...) -> None: ...

class MessageId(_message.Message):
    __slots__ = ("ledger", "entry", "partition", "batch_index")
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BATCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    ledger: int
    entry: int
    partition: int
    batch_index: int
    def __init__(self, ledger: _Optional[int] = ..., entry: _Optional[int] = ..., partition: _Optional[int] = ..., batch_index: _Optional[int] = ...) -> None: ...

class FindOffsetRequest(_message.Message):
    __slots__ = ("topic", "message_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    message_id: MessageId
    def __init__(self, topic: _Optional[str] = ..., message_id: _Optional[_Union[MessageId, _Mapping]] = ...) -> None: ...

class FindOffsetResponse(_message.Message):
    __slots__ = ("offset", "base_offset", "offset_count")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    OFFSET_COUNT_FIELD_NUMBER: _ClassVar[int]
    offset: int
    base_offset: int
    offset_count: int
    def __init__(self, offset: _Optional[int] = ..., base_offset: _Optional[int] = ..., offset_count: _Optional[int] = ...) -> None: ...

class ListPartitionsRequest(_message.Message):
    __slots__ = ("topic",)
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    topic: str
    def __init__(self, topic: _Optional[str] = ...) -> None: ...

class ListPartitionsResponse(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[Partition]
    def __init__(self, partitions: _Optional[_Iterable[_Union[Partition, _Mapping]]] = ...) -> None: ...

class Partition(_message.Message):
    __slots__ = ("topic", "partition", "state", "leader", "log_start", "end_offset", "last_stable_offset", "last", "producers", "open_transactions", "transactions_left_open")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LOG_START_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_STABLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    OPEN_TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONS_LEFT_OPEN_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    state: str
    leader: int
    log_start: int
    end_offset: int
    last_stable_offset: int
    last: MessageId
    producers: int
    open_transactions: int
    transactions_left_open: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., state: _Optional[str] = ..., leader: _Optional[int] = ..., log_start: _Optional[int] = ..., end_offset: _Optional[int] = ..., last_stable_offset: _Optional[int] = ..., last: _Optional[_Union[MessageId, _Mapping]] = ..., producers: _Optional[int] = ..., open_transactions: _Optional[int] = ..., transactions_left_open: _Optional[int] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    def __init__(self, groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("group_id", "protocol", "state", "members")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    protocol: str
    state: str
    members: int
    def __init__(self, group_id: _Optional[str] = ..., protocol: _Optional[str] = ..., state: _Optional[str] = ..., members: _Optional[int] = ...) -> None: ...

class DescribeFleetRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeFleetResponse(_message.Message):
    __slots__ = ("members",)
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[FleetMember]
    def __init__(self, members: _Optional[_Iterable[_Union[FleetMember, _Mapping]]] = ...) -> None: ...

class FleetMember(_message.Message):
    __slots__ = ("node_id", "host", "port", "rack", "control", "leads", "is_self", "release", "stored_format")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    LEADS_FIELD_NUMBER: _ClassVar[int]
    IS_SELF_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    STORED_FORMAT_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    host: str
    port: int
    rack: str
    control: str
    leads: bool
    is_self: bool
    release: str
    stored_format: int
    def __init__(self, node_id: _Optional[int] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., rack: _Optional[str] = ..., control: _Optional[str] = ..., leads: _Optional[bool] = ..., is_self: _Optional[bool] = ..., release: _Optional[str] = ..., stored_format: _Optional[int] = ...) -> None: ...

class SkipEntryRequest(_message.Message):
    __slots__ = ("topic", "partition", "offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class SkipEntryResponse(_message.Message):
    __slots__ = ("message_id", "next_offset")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    message_id: MessageId
    next_offset: int
    def __init__(self, message_id: _Optional[_Union[MessageId, _Mapping]] = ..., next_offset: _Optional[int] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListLogLevelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListLogLevelsResponse(_message.Message):
    __slots__ = ("loggers",)
    LOGGERS_FIELD_NUMBER: _ClassVar[int]
    loggers: _containers.RepeatedCompositeFieldContainer[Logger]
    def __init__(self, loggers: _Optional[_Iterable[_Union[Logger, _Mapping]]] = ...) -> None: ...

class Logger(_message.Message):
    __slots__ = ("name", "level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    level: str
    def __init__(self, name: _Optional[str] = ..., level: _Optional[str] = ...) -> None: ...

class SetLogLevelRequest(_message.Message):
    __slots__ = ("logger", "level")
    LOGGER_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    logger: str
    level: str
    def __init__(self, logger: _Optional[str] = ..., level: _Optional[str] = ...) -> None: ...

class SetLogLevelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
