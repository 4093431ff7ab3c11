"""Durable subscriptions, by Pulsar's admin API."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from urllib.parse import quote

from kafka_sidecar.pulsar.admin.http import AdminHttp, path_of
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Refused

# Cursors of the brokers themselves, for compaction and deduplication.
COMPACTION: Final = "__compaction"
_PULSARS_OWN: Final = (COMPACTION, "pulsar.dedup")


def names_a_subscription(name: str) -> bool:
    """Whether a name reaches a subscription of exactly that name through the admin API.

    A path has no place for `.` and `..`, whose URL is that of something else; brokers decode `%` once more
    than it was encoded; and some names are the cursors of Pulsar itself.
    """
    return name not in ("", ".", "..", *_PULSARS_OWN) and "%" not in name and not name.startswith("pulsar.repl")


def _subscription(partition: str, name: str) -> str:
    if not names_a_subscription(name):
        raise Refused(f"{name!r} can't be the name of a subscription")
    return f"{path_of(partition)}/subscription/{quote(name, safe='')}"


class SubscriptionAdmin:
    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def create(self, partition: str, name: str) -> None:
        """A durable subscription at the beginning; AlreadyExists where there is one."""
        earliest = {
            "ledgerId": -1,
            "entryId": -1,
            "partitionIndex": -1,
        }  # MessageId.earliest as an object: only later brokers accept the word "earliest"
        await self._http.call("PUT", _subscription(partition, name), body=earliest)

    async def reset_cursor(self, partition: str, name: str, next_entry: Position) -> None:
        """Let a subscription go on with `next_entry`: what is before counts as acknowledged."""
        place = {
            "ledgerId": next_entry.ledger,
            "entryId": next_entry.entry,
            "partitionIndex": -1,
            "batchIndex": -1,
            "excluded": False,
        }
        await self._http.call("POST", _subscription(partition, name) + "/resetcursor", body=place)

    async def delete(self, partition: str, name: str) -> None:
        """Refused while consumers are connected."""
        await self._http.call("DELETE", _subscription(partition, name))

    async def acknowledged(self, partition: str, name: str) -> Position | None:
        """The entry up to which a durable subscription has acknowledged all; None where there is no such
        subscription.
        """
        return await self._http.get(path_of(partition) + "/internalStats", partial(mark_delete_position, name))


def mark_delete_position(name: str, stats: Any) -> Position | None:
    """Of the internal stats of a partition."""
    cursors = stats.get("cursors", {})
    cursor = cursors.get(quote(name, safe="")) or cursors.get(name)
    if cursor is None:
        return None
    ledger, _, entry = cursor["markDeletePosition"].partition(":")
    return Position(int(ledger), int(entry))
