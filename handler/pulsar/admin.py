"""Pulsar's admin REST, as far as it is used. 307 is followed with method and body kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx

from handler.pulsar.entry import LedgerInfo, LogStats, Position
from handler.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable

T = TypeVar("T")

TIMEOUT_SECONDS: Final = 30.0
MAX_REDIRECTS: Final = 5


BEFORE_FIRST: Final = Position(-1, -1)


class _NotReached(Unavailable):
    """Another broker may answer."""


class AlreadyExists(PulsarError):
    """The topic, namespace or subscription to be created is there."""


def _path(topic: str) -> str:
    """`persistent://tenant/namespace/name` as the path that admin URLs have."""
    domain, _, rest = topic.partition("://")
    tenant, namespace, name = rest.split("/", 2)
    return f"/admin/v2/{domain}/{quote(tenant, safe='')}/{quote(namespace, safe='')}/{quote(name, safe='')}"


# Cursors that brokers keep on a topic for themselves.
_PULSARS_OWN: Final = ("__compaction", "pulsar.dedup")


def names_a_subscription(name: str) -> bool:
    """Whether a name reaches a subscription of exactly that name through the admin API.

    A path has no place for `.` and `..`, whose URL is that of something else; brokers decode `%` once more
    than it was encoded; and some names are the cursors of Pulsar itself.
    """
    return name not in ("", ".", "..", *_PULSARS_OWN) and "%" not in name and not name.startswith("pulsar.repl")


def _subscription(partition: str, name: str) -> str:
    if not names_a_subscription(name):
        raise Refused(f"{name!r} can't be the name of a subscription")
    return f"{_path(partition)}/subscription/{quote(name, safe='')}"


class PulsarAdmin:
    def __init__(self, url: str, max_connections: int = 16) -> None:
        self._urls = [one.rstrip("/") for one in url.split(",")]
        self._current = 0  # the one that answered last
        self._http = httpx.AsyncClient(timeout=TIMEOUT_SECONDS, limits=httpx.Limits(max_connections=max_connections), trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, method: str, path: str, *, json: object = None, params: dict[str, str] | None = None) -> httpx.Response:
        """One call to whichever broker answers, redirects followed; raises the exception that fits the status."""
        failure: Unavailable | None = None
        for base in (*self._urls[self._current :], *self._urls[: self._current]):
            try:
                response = await self._call_at(base, method, path, json, params)
            except _NotReached as error:
                failure = error
            else:
                self._current = self._urls.index(base)
                return response
        assert failure is not None
        raise failure

    async def _call_at(self, base: str, method: str, path: str, json: object, params: dict[str, str] | None) -> httpx.Response:
        url = httpx.URL(base + path, params=params) if params else httpx.URL(base + path)
        for _ in range(MAX_REDIRECTS):
            try:
                response = await self._http.request(method, url, json=json)
            except (httpx.RequestError, OSError) as error:
                # A call that changes something is not repeated once a broker may have heard it.
                again = method == "GET" or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                raise (_NotReached if again else Unavailable)(f"{method} {url}: {error or type(error).__name__}") from error
            if response.status_code not in (302, 307):
                return _checked(method, url, response)
            try:
                url = url.join(response.headers["location"])
            except (KeyError, httpx.InvalidURL) as error:
                raise Unavailable(f"{method} {url}: redirected to no address") from error
        raise Unavailable(f"{method} {path} was redirected {MAX_REDIRECTS} times")

    async def get(self, path: str, read: Callable[[Any], T], **params: str) -> T:
        """The answer as `read` understands it; Unavailable where no broker would answer so: a proxy's page, say."""
        response = await self.call("GET", path, params=params)
        try:
            return read(response.json())
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Unavailable(f"GET {path}: the answer is not that of a broker: {_reason(response) or type(error).__name__}") from error

    # --- topics

    async def partitioned_topics(self, namespace: str) -> list[str]:
        return await self.get(f"/admin/v2/persistent/{namespace}/partitioned", _texts)

    async def partitions(self, topic: str) -> int:
        """How many partitions `topic` has; TopicMissing when there is no such partitioned topic."""
        count = await self.get(_path(topic) + "/partitions", lambda found: int(found["partitions"]))
        if count == 0:  # 2.9 answers 0 where later versions answer 404
            raise TopicMissing(f"{topic} is not a partitioned topic")
        return count

    async def create_topic(self, topic: str, partitions: int) -> None:
        await self.call("PUT", _path(topic) + "/partitions", json=partitions)

    async def grow_topic(self, topic: str, partitions: int) -> None:
        await self.call("POST", _path(topic) + "/partitions", json=partitions)

    async def delete_topic(self, topic: str) -> None:
        # Forced: the sidecar's own readers are subscriptions, and a Kafka topic goes with its consumers connected.
        await self.call("DELETE", _path(topic) + "/partitions", params={"force": "true"})

    async def created_at(self, partition: str) -> str:
        """When the log of a partition was created, as the metadata store says it."""
        return await self.get(_path(partition) + "/internal-info", lambda info: str(info["creationDate"]))

    async def log_stats(self, partition: str) -> LogStats:
        ledgers, index = await asyncio.gather(
            self.get(_path(partition) + "/internalStats", _ledgers), self.get(_path(partition) + "/internal-info", _index_property)
        )
        return LogStats(ledgers, index)

    async def find_index(self, partition: str, index: int) -> Position | None:
        """The entry that holds `index` (PIP-415), None beyond the end; before the index of the first entry,
        which is that of its last message, the answer is BEFORE_FIRST. Refused where the broker is too old for it.
        """
        try:
            found = await self.get(_path(partition) + "/getMessageIdByIndex", _position, index=str(index))
        except TopicMissing as error:
            if "for index" in str(error):
                return None
            raise Refused("this broker has no getMessageIdByIndex") from error
        return found or BEFORE_FIRST

    async def find_time(self, partition: str, timestamp: int) -> Position | None:
        """The first entry whose broker timestamp is at or after `timestamp` milliseconds."""
        try:
            return await self.get(f"{_path(partition)}/messageid/{timestamp}", _position)
        except TopicMissing:
            return None

    async def index_of(self, partition: str, position: Position) -> int | None:
        """The index of one entry. Its whole payload travels; for searches by halves on old brokers."""
        path = f"{_path(partition)}/ledger/{position.ledger}/entry/{position.entry}"
        value = (await self.call("GET", path)).headers.get("X-Pulsar-Broker-Entry-METADATA-index", "")
        return int(value) if value.isdigit() else None

    async def is_marker(self, partition: str, position: Position) -> bool:
        """Whether an entry is a marker of Pulsar's own, which no consumer is given."""
        path = f"{_path(partition)}/ledger/{position.ledger}/entry/{position.entry}"
        return "X-Pulsar-marker-type" in (await self.call("GET", path)).headers

    async def unload(self, topic: str) -> None:
        await self.call("PUT", _path(topic) + "/unload")

    async def partition_stats(self, topic: str) -> dict[int, dict[str, Any]]:
        """The stats of every partition that has some, by index."""
        return await self.get(_path(topic) + "/partitioned-stats", _by_partition, perPartition="true")

    async def compacted_ledger(self, partition: str) -> int:
        """The ledger that holds what a partition was compacted to, −1 for none."""
        return await self.get(_path(partition) + "/internalStats", _compacted_ledger)

    async def is_compacted(self, partition: str) -> bool:
        """Whether the partition has ever been compacted, so that the broker keeps what is not compacted yet."""
        return await self.get(_path(partition) + "/internalStats", lambda stats: "__compaction" in stats.get("cursors", {}))

    async def compact(self, partition: str) -> None:
        """Begin a compaction; AlreadyExists while one is under way."""
        await self.call("PUT", _path(partition) + "/compaction")

    # --- subscriptions

    async def create_subscription(self, partition: str, name: str) -> None:
        """A durable subscription at the beginning; AlreadyExists where there is one."""
        earliest = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}  # the word alone is known to later brokers only
        await self.call("PUT", _subscription(partition, name), json=earliest)

    async def reset_cursor(self, partition: str, name: str, next_entry: Position) -> None:
        """Let a subscription go on with `next_entry`: what is before counts as acknowledged."""
        place = {"ledgerId": next_entry.ledger, "entryId": next_entry.entry, "partitionIndex": -1, "batchIndex": -1, "excluded": False}
        await self.call("POST", _subscription(partition, name) + "/resetcursor", json=place)

    async def delete_subscription(self, partition: str, name: str) -> None:
        """Refused while consumers are connected."""
        await self.call("DELETE", _subscription(partition, name))

    async def acknowledged(self, partition: str, name: str) -> Position | None:
        """The entry up to which a durable subscription has acknowledged all; None where there is no such subscription."""
        return await self.get(_path(partition) + "/internalStats", partial(_mark_delete_position, name))

    # --- cluster and namespace

    async def create_namespace(self, namespace: str) -> None:
        await self.call("PUT", f"/admin/v2/namespaces/{namespace}")

    async def keep_for_ever(self, namespace: str) -> None:
        retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
        await self.call("POST", f"/admin/v2/namespaces/{namespace}/retention", json=retention)

    async def clusters(self) -> list[str]:
        return await self.get("/admin/v2/clusters", _texts)

    async def broker_settings(self) -> dict[str, str]:
        return await self.get("/admin/v2/brokers/configuration/runtime", _mapping)

    async def tenants(self) -> list[str]:
        return await self.get("/admin/v2/tenants", _texts)

    async def namespace_policies(self, namespace: str) -> dict[str, Any]:
        return await self.get(f"/admin/v2/namespaces/{namespace}", _mapping)


def _checked(method: str, url: httpx.URL, response: httpx.Response) -> httpx.Response:
    status = response.status_code
    if status < 300 and "html" in response.headers.get("content-type", ""):  # a proxy's page; brokers answer JSON or nothing
        raise Unavailable(f"{method} {url.path}: the answer is not that of a broker: {_reason(response)}")
    if status < 300:
        return response
    text = f"{method} {url.path}: {status} {_reason(response)}"
    if status == 404:
        raise TopicMissing(text)
    if status in (401, 403):
        raise NotPermitted(text)
    if status == 409:
        raise AlreadyExists(text)
    if status >= 500 or status == 429:
        raise Unavailable(text)
    raise Refused(text)


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["reason"])
    except (ValueError, KeyError, TypeError):
        return " ".join(re.sub(r"(?s)<(style|head).*?</\1>|<[^>]*>", " ", response.text).split())[:200]


def _texts(found: Any) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TypeError("not a list of names")
    return found


def _mapping(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TypeError("not an object")
    return found


def _by_partition(found: Any) -> dict[int, dict[str, Any]]:
    # While brokers stop, the topic itself may stand among them.
    indexes = {name: name.rpartition("-partition-")[2] for name in found["partitions"]}
    return {int(index): _mapping(found["partitions"][name]) for name, index in indexes.items() if index.isdigit()}


def _compacted_ledger(stats: Any) -> int:
    return int((stats.get("compactedLedger") or {}).get("ledgerId", -1))


def _mark_delete_position(name: str, stats: Any) -> Position | None:
    cursors = stats.get("cursors", {})
    cursor = cursors.get(quote(name, safe="")) or cursors.get(name)
    if cursor is None:
        return None
    ledger, _, entry = cursor["markDeletePosition"].partition(":")
    return Position(int(ledger), int(entry))


def _position(found: dict[str, Any]) -> Position | None:
    ledger, entry = int(found["ledgerId"]), int(found["entryId"])
    return None if ledger < 0 or entry < 0 else Position(ledger, entry)


def _ledgers(internal: dict[str, Any]) -> tuple[LedgerInfo, ...]:
    # The open ledger shows 0 entries in the list; its count is currentLedgerEntries. The list is not
    # sorted when some of it is offloaded.
    known = sorted(internal["ledgers"], key=lambda ledger: int(ledger["ledgerId"]))
    ledgers = []
    for place, ledger in enumerate(known):
        open_one = place == len(known) - 1
        entries = int(internal["currentLedgerEntries"]) if open_one else int(ledger["entries"])
        size = int(internal["currentLedgerSize"]) if open_one else int(ledger["size"])
        if entries > 0:
            ledgers.append(LedgerInfo(int(ledger["ledgerId"]), entries, size))
    return tuple(ledgers)


def _index_property(info: dict[str, Any]) -> int | None:
    index = (info.get("properties") or {}).get("index")
    return None if index is None else int(index)
