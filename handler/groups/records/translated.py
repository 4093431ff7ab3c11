"""Records of groups with other names for their topics, also in what members of classic groups say in Kafka's own words."""

from __future__ import annotations

from handler.coordination.home import Translation
from handler.groups.records import Key, OffsetCommitKey, PendingOffsetKey, Record, Value
from handler.groups.records.classic import GroupMetadataValue
from handler.groups.records.consumer import MemberMetadataValue, RegularExpressionKey, RegularExpressionValue
from handler.groups.records.subscription import renamed_parts, renamed_subscription
from handler.groups.vocabulary import CONSUMER_PROTOCOL


def translated(record: Record, names: Translation) -> Record:
    key, value = record
    return Record(_key(key, names), None if value is None else _value(value, names))


def _key(key: Key, names: Translation) -> Key:
    if isinstance(key, OffsetCommitKey | PendingOffsetKey):
        return key._replace(topic=names.name(key.topic))
    return RegularExpressionKey(key.group, names.expression(key.regex)) if isinstance(key, RegularExpressionKey) else key


def _value(value: Value, names: Translation) -> Value:
    if isinstance(value, GroupMetadataValue):
        return _classic_group(value, names) if value.protocol_type == CONSUMER_PROTOCOL else value
    if isinstance(value, MemberMetadataValue):
        regex = None if value.regex is None else names.expression(value.regex)
        classic = value.classic
        if classic is not None:
            classic = classic._replace(protocols=tuple((name, renamed_subscription(said, names.name)) for name, said in classic.protocols))
        return value._replace(topics=tuple(map(names.name, value.topics)), regex=regex, classic=classic)
    return value._replace(topics=frozenset(map(names.name, value.topics))) if isinstance(value, RegularExpressionValue) else value


def _classic_group(group: GroupMetadataValue, names: Translation) -> GroupMetadataValue:
    members = (
        member._replace(
            subscription=renamed_subscription(member.subscription, names.name), assignment=renamed_parts(member.assignment, names.name)
        )
        for member in group.members
    )
    return group._replace(members=tuple(members))
