"""Topics and their logs, by Pulsar's admin API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kafka_sidecar.model.partition_name import split_partition_name
from kafka_sidecar.pulsar.admin.http import AdminHttp, mapping, path_of, texts
from kafka_sidecar.pulsar.admin.subscriptions import COMPACTION, mark_delete_position
from kafka_sidecar.pulsar.entry import CompactionStats, LedgerInfo, LogStats, Position
from kafka_sidecar.pulsar.errors import Refused, TopicMissing, Unavailable, Undescribed

BEFORE_FIRST: Final = Position(-1, -1)

# Error texts of brokers for an entry that was deleted: since Pulsar 3.0, and before.
_IS_GONE: Final = re.compile("Message id not found|ledgerId does not belong to this topic")
# PartitionedTopicMetadata.MEDIA_TYPE
_TOPIC_METADATA: Final = "application/vnd.partitioned-topic-metadata+json"


class DescribedTopic(NamedTuple):
    """A topic as the metadata store has it."""

    partitions: int  # 0 for a topic without partitions, which is one log
    properties: dict[str, str]


class TopicAdmin:
    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def partitioned_topics(self, namespace: str) -> list[str]:
        return await self._http.get(f"/admin/v2/persistent/{namespace}/partitioned", texts)

    async def logs(self, namespace: str) -> list[str]:
        """All that have a log: topics without partitions, and the partitions of the others."""
        return await self._http.get(f"/admin/v2/persistent/{namespace}", texts)

    async def describe(self, topic: str) -> DescribedTopic:
        """What `topic` is; TopicMissing when it is not there."""
        found = await self._http.get(path_of(topic) + "/partitions", _described)
        if found.partitions:
            return found
        # The topic has no partitions, or does not exist: Pulsar 2.9 answers 0 where later versions answer 404.
        try:
            await self.log_stats(topic)
        except Unavailable as error:
            raise Undescribed(f"topic {topic} can't be described: {error}") from error
        return DescribedTopic(0, await self._properties(topic))

    async def _properties(self, topic: str) -> dict[str, str]:
        """Of a topic without partitions; brokers before 2.10 keep none."""
        try:
            return await self._http.get(path_of(topic) + "/properties", _texts_by_name)
        except (Refused, TopicMissing):
            return {}

    async def is_partitioned(self, topic: str) -> bool:
        """Whether there is a partitioned topic of this name, in one call."""
        try:
            return (await self._http.get(path_of(topic) + "/partitions", _described)).partitions > 0
        except TopicMissing:
            return False

    async def partitions(self, topic: str) -> int:
        """How many partitions `topic` has, 0 for none; TopicMissing when it is not there."""
        return (await self.describe(topic)).partitions

    async def create_topic(
        self, topic: str, partitions: int, properties: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Make a partitioned topic. Refused where it is to have properties and the broker is too old for them
        (2.10).
        """
        if properties:
            body = {"partitions": partitions, "properties": dict(properties)}
            try:
                await self._http.call("PUT", path_of(topic) + "/partitions", body=body, content_type=_TOPIC_METADATA)
            except Refused as error:
                if ": 415 " in str(error) or "Cannot deserialize" in str(
                    error
                ):  # Pulsar 2.9 expects a plain number, whatever the Content-Type
                    raise Refused("this Pulsar keeps no properties of topics: it must be 2.10 or later") from error
                raise
        else:
            await self._http.call("PUT", path_of(topic) + "/partitions", body=partitions)

    async def set_properties(self, topic: str, properties: Mapping[str, str]) -> None:
        """Set these and leave the others. Refused where the broker is too old for it."""
        with _changing_properties():
            await self._http.call("PUT", path_of(topic) + "/properties", body=dict(properties))

    async def remove_property(self, topic: str, name: str) -> None:
        with _changing_properties():
            await self._http.call("DELETE", path_of(topic) + "/properties", params={"key": name})

    async def grow_topic(self, topic: str, partitions: int) -> None:
        await self._http.call("POST", path_of(topic) + "/partitions", body=partitions)

    async def create_missing_partitions(self, topic: str) -> None:
        """The logs of a topic's partitions that somebody has deleted one by one."""
        await self._http.call("POST", path_of(topic) + "/createMissedPartitions")

    async def delete_topic(self, topic: str, *, partitioned: bool) -> None:
        # Forced, because the sidecar's own readers are subscriptions too, and Kafka deletes a topic even with consumers
        # connected.
        await self._http.call(
            "DELETE", path_of(topic) + ("/partitions" if partitioned else ""), params={"force": "true"}
        )

    async def delete_unused_topic(self, topic: str) -> None:
        """A partitioned one. Refused while somebody is connected to write or read it."""
        await self._http.call("DELETE", path_of(topic) + "/partitions")

    async def created_at(self, partition: str) -> str:
        """When the log of a partition was created, as the metadata store says it."""
        return await self._http.get(path_of(partition) + "/internal-info", lambda info: str(info["creationDate"]))

    async def log_stats(self, partition: str) -> LogStats:
        return await self._http.get(path_of(partition) + "/internalStats", _log_stats)

    async def index_property(self, partition: str) -> int | None:
        """The last index as the ledgers' metadata has it: older than the last entry, and left when all entries are
        gone.
        """
        return await self._http.get(path_of(partition) + "/internal-info", _index_property)

    async def find_index(self, partition: str, index: int) -> Position | None:
        """The entry that holds `index` (PIP-415), None beyond the end; before the index of the first entry,
        which is that of its last message, the answer is BEFORE_FIRST. Refused where the broker is too old for it.
        """
        try:
            found = await self._http.get(path_of(partition) + "/getMessageIdByIndex", _position, index=str(index))
        except TopicMissing as error:
            if "for index" in str(error):
                return None
            raise Refused("this broker has no getMessageIdByIndex") from error
        return found or BEFORE_FIRST

    async def find_time(self, partition: str, timestamp: int) -> Position | None:
        """The first entry whose broker timestamp is at or after `timestamp` milliseconds; the place behind the last
        where none is.
        """
        try:
            return await self._http.get(f"{path_of(partition)}/messageid/{timestamp}", _position)
        except TopicMissing:
            return None

    async def index_of(self, partition: str, position: Position) -> int | None:
        """The index of one entry; None where it has none, or is gone. For searches by halves on old brokers."""
        headers = await self._headers_of(partition, position)
        value = "" if headers is None else headers.get("x-pulsar-broker-entry-metadata-index", "")
        return int(value) if value.isdigit() else None

    async def is_marker(self, partition: str, position: Position) -> bool:
        """Whether an entry is a marker of Pulsar's own, which no consumer is given. Unavailable where it is gone."""
        headers = await self._headers_of(partition, position)
        if headers is None:
            raise Unavailable(f"entry {position} of {partition} was removed meanwhile")
        return "x-pulsar-marker-type" in headers

    async def _headers_of(self, partition: str, position: Position) -> Mapping[str, str] | None:
        """What the broker says of an entry, whose whole payload travels; None where retention has taken it."""
        path = f"{path_of(partition)}/ledger/{position.ledger}/entry/{position.entry}"
        try:
            return (await self._http.call("GET", path)).headers
        except (TopicMissing, Unavailable) as error:
            if _IS_GONE.search(str(error)):
                return None
            raise

    async def partition_stats(self, topic: str) -> dict[int, dict[str, Any]]:
        """The stats of every partition of a partitioned topic that has some, by index."""
        return await self._http.get(path_of(topic) + "/partitioned-stats", _by_partition, perPartition="true")

    async def stats(self, topic: str) -> dict[str, Any]:
        """The stats of a topic without partitions."""
        return await self._http.get(path_of(topic) + "/stats", mapping)

    async def compacted_ledger(self, partition: str) -> int:
        """The ledger that holds what a partition was compacted to, −1 for none."""
        return await self._http.get(path_of(partition) + "/internalStats", _compacted_ledger)

    async def compaction_stats(self, partition: str) -> CompactionStats:
        return await self._http.get(path_of(partition) + "/internalStats", _compaction_stats)

    async def compact(self, partition: str) -> None:
        """Begin a compaction; AlreadyExists while one is under way."""
        await self._http.call("PUT", path_of(partition) + "/compaction")


@contextmanager
def _changing_properties() -> Iterator[None]:
    try:
        yield
    except (Refused, TopicMissing) as error:
        if re.search(": 40[45] ", str(error)):
            text = (
                "this Pulsar can't change the properties of a topic: it must be 3.0 or later, or the topic be made "
                "with this config"
            )
            raise Refused(text) from error
        raise


def _described(found: Any) -> DescribedTopic:
    return DescribedTopic(int(found["partitions"]), _texts_by_name(found.get("properties") or {}))


def _texts_by_name(found: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in mapping(found).items()}


def _by_partition(found: Any) -> dict[int, dict[str, Any]]:
    # While brokers shut down, the partitioned topic itself may be listed among its partitions.
    return {
        split[1]: mapping(stats)
        for name, stats in found["partitions"].items()
        if (split := split_partition_name(name)) is not None
    }


def _compacted_ledger(stats: Any) -> int:
    return int((stats.get("compactedLedger") or {}).get("ledgerId", -1))


def _compaction_stats(stats: Any) -> CompactionStats:
    compacted = stats.get("compactedLedger") or {}
    # -1 where there is no compacted ledger
    entries, size = int(compacted.get("entries", 0)), int(compacted.get("size", 0))
    properties = stats.get("cursors", {}).get(COMPACTION, {}).get("properties") or {}
    return CompactionStats(
        _log_stats(stats),
        mark_delete_position(COMPACTION, stats),
        _compacted_ledger(stats),
        int(properties.get("CompactedTopicLedger", -1)),
        max(0, entries),
        max(0, size),
    )


def _position(found: dict[str, Any]) -> Position | None:
    ledger, entry = int(found["ledgerId"]), int(found["entryId"])
    return None if ledger < 0 or entry < 0 else Position(ledger, entry)


def _log_stats(internal: dict[str, Any]) -> LogStats:
    # The list shows 0 entries for the open ledger; its count is currentLedgerEntries. That is 0 where no ledger is
    # open, as in a terminated topic that a broker has loaded again. The list is not sorted when some ledgers are
    # offloaded.
    known = sorted(internal["ledgers"], key=lambda ledger: int(ledger["ledgerId"]))
    ledgers, empty = [], None
    for place, ledger in enumerate(known):
        entries, size = int(ledger["entries"]), int(ledger["size"])
        if place == len(known) - 1:
            entries, size = (
                max(entries, int(internal["currentLedgerEntries"])),
                max(size, int(internal["currentLedgerSize"])),
            )
        if entries > 0:
            ledgers.append(LedgerInfo(int(ledger["ledgerId"]), entries, size, ledger.get("offloaded") is True))
        elif place == len(known) - 1:
            empty = int(ledger["ledgerId"])
    return LogStats(tuple(ledgers), empty)


def _index_property(info: dict[str, Any]) -> int | None:
    index = (info.get("properties") or {}).get("index")
    return None if index is None else int(index)
