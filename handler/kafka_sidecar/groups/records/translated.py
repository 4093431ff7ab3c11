"""Records of groups with other names for their topics. What members of classic groups say to each other names topics in
full already.
"""

from __future__ import annotations

from kafka_sidecar.coordination.home import Translation
from kafka_sidecar.groups.records import Key, OffsetCommitKey, PendingOffsetKey, Record, Value
from kafka_sidecar.groups.records.consumer import MemberMetadataValue, RegularExpressionKey, RegularExpressionValue


def translated(record: Record, names: Translation) -> Record:
    key, value = record
    return Record(_key(key, names), None if value is None else _value(value, names))


def _key(key: Key, names: Translation) -> Key:
    if isinstance(key, OffsetCommitKey | PendingOffsetKey):
        return key._replace(topic=names.name(key.topic))
    return (
        RegularExpressionKey(key.group, names.expression(key.regex)) if isinstance(key, RegularExpressionKey) else key
    )


def _value(value: Value, names: Translation) -> Value:
    if isinstance(value, MemberMetadataValue):
        regex = None if value.regex is None else names.expression(value.regex)
        # A classic member accepts partitions only under the topic names in its subscription, so full names are not
        # translated. A full name means the same topic in every namespace.
        said = value.classic is not None
        topics = tuple(name if said and "/" in name else names.name(name) for name in value.topics)
        return value._replace(topics=topics, regex=regex)
    return (
        value._replace(topics=frozenset(map(names.name, value.topics)))
        if isinstance(value, RegularExpressionValue)
        else value
    )
