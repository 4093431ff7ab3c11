"""Groups as a term before has left them in the log."""

from __future__ import annotations

from collections.abc import Callable

from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.records import GroupMetadataKey, GroupMetadataValue, Key, Record, Value
from kafka_sidecar.groups.records.consumer import ConsumerGroupMetadataKey
from kafka_sidecar.groups.vocabulary import Now


def restored(
    group_id: str,
    stored: dict[Key, Value],
    new_classic: Callable[[str], ClassicGroup],
    new_consumer: Callable[[str], ConsumerGroup],
    now: Now,
) -> tuple[ClassicGroup | ConsumerGroup | None, list[Record]]:
    """The group that is made of its records, and those of them that are to be deleted.

    `stored` is in the order of the log. A classic group is one record, a consumer group is there if its epoch is.
    Where both are, a change from one to the other was cut short after the later was stored: that one counts.
    """
    kinds = [type(key) for key in stored if isinstance(key, GroupMetadataKey | ConsumerGroupMetadataKey)]
    if kinds and kinds[-1] is ConsumerGroupMetadataKey:
        consumer = new_consumer(group_id)
        consumer.load({key: value for key, value in stored.items() if not isinstance(key, GroupMetadataKey)}, now)
        return consumer, [Record(key, None) for key in stored if isinstance(key, GroupMetadataKey)]
    leftovers = [Record(key, None) for key in stored if not isinstance(key, GroupMetadataKey)]
    value = stored.get(GroupMetadataKey(group_id))
    if not isinstance(value, GroupMetadataValue):
        return None, leftovers
    classic = new_classic(group_id)
    classic.load(value, now)
    return classic, leftovers
