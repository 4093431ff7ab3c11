"""What an internal topic stores, and how much of it Pulsar may take. Pure.

    the log         ledgers ─────────────── the cursor of compaction ─────────────── the end
                    retention takes these │ these are held, whatever the retention
    compacted       the last message of each key up to the cursor

So a finite retention takes nothing that counts, as long as the cursor is there, and names the ledger of what is
compacted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka_sidecar.pulsar.entry import CompactionStats

# Pulsar 2.9 loses the compacted ledger if the broker is killed during a compaction
# (ManagedCursorImpl.internalResetCursor). Not all versions between 2.9 and 2.10.4 were tested.
FIRST_VERSION: Final = (2, 10, 4)
NOT_THESE: Final = frozenset({(2, 11, 0)})
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")
# Fewer new entries and bytes are not compacted at once: the next sidecar that loads the topic reads them in a moment.
LEAST_ENTRIES: Final = 1_000
LEAST_BYTES: Final = 2 * 1024 * 1024
_EVICTION: Final = "consumer_backlog_eviction"
# New entries are compacted after 300 s if there are at least a quarter as many of them as compacted ones.
WAIT_SECONDS: Final = 300.0
SMALLER_PART: Final = 4


class Retention(NamedTuple):
    """As Pulsar has it. −1 is no limit."""

    minutes: int
    megabytes: int

    @property
    def is_finite(self) -> bool:
        return self != FOR_EVER


FOR_EVER: Final = Retention(-1, -1)


def retention_of(minutes: int) -> Retention:
    """Brokers take a 0 only where both limits are 0."""
    if minutes < 0:
        return FOR_EVER
    return Retention(minutes, -1) if minutes else Retention(0, 0)


def retention_without_own(policies: Mapping[str, Any], settings: Mapping[str, str]) -> Retention:
    """Of a topic that leaves it to its namespace."""
    of_namespace = policies.get("retention_policies")
    if of_namespace is not None:
        return Retention(
            int(of_namespace.get("retentionTimeInMinutes", 0)), int(of_namespace.get("retentionSizeInMB", 0))
        )
    return Retention(
        int(settings.get("defaultRetentionTimeInMinutes", "0")), int(settings.get("defaultRetentionSizeInMB", "0"))
    )


def may_free(version: str | None) -> bool:
    """Whether a broker of this version keeps what is compacted through a crash."""
    found = _VERSION.search(version or "")
    if found is None:
        return False
    numbers = tuple(map(int, found.groups()))
    return numbers >= FIRST_VERSION and numbers not in NOT_THESE


def what_moves_cursors(
    own: Mapping[str, Any], policies: Mapping[str, Any], settings: Mapping[str, str]
) -> Iterator[str]:
    """What lets brokers move or delete the cursor of compaction, and with it what is compacted. Each says what to
    change. `own`: policies of the topic itself, named as those of its namespace.
    """
    for ttl in (
        own.get("message_ttl_in_seconds"),
        policies.get("message_ttl_in_seconds"),
        settings.get("ttlDurationDefaultInSeconds", "0"),
    ):
        if ttl is not None:
            if int(ttl) > 0:
                yield "its namespace has a message TTL: set it to 0"
            break
    expiry = policies.get("subscription_expiration_time_minutes")
    if int(settings.get("subscriptionExpirationTimeMinutes", "0") if expiry is None else expiry) > 0:
        yield "subscriptions of its namespace expire: set the subscription expiration time to 0"
    if any(_evicts(kind, limits, own, policies, settings) for kind, limits in _QUOTAS.items()):
        yield "its namespace evicts backlogs: use the backlog quota policy producer_request_hold"


# Types of backlog quotas, and the broker settings that apply to a type without a policy.
_QUOTAS: Final = {
    "destination_storage": ("backlogQuotaDefaultLimitGB", "backlogQuotaDefaultLimitBytes"),
    "message_age": ("backlogQuotaDefaultLimitSecond",),
}


def _evicts(
    kind: str, limits: Sequence[str], own: Mapping[str, Any], policies: Mapping[str, Any], settings: Mapping[str, str]
) -> bool:
    for policy in (own, policies):
        quota = (policy.get("backlog_quota_map") or {}).get(kind)
        if quota is not None:
            return bool(quota.get("policy") == _EVICTION)
    has_limit = any(float(settings.get(name) or -1) > 0 for name in limits)
    return has_limit and settings.get("backlogQuotaDefaultRetentionPolicy") == _EVICTION


def stored_bytes(stats: CompactionStats) -> int:
    return sum(ledger.size for ledger in stats.log.ledgers) + stats.compacted_bytes


def is_worth_compacting(stats: CompactionStats, waited: float) -> bool:
    """Whether about as much would go as would be left, or after a while a part of that."""
    first, last = stats.log.first, stats.log.last
    if first is None or last is None or not stats.has_news:
        return False
    begin = first if stats.compacted_to is None else max(first, stats.compacted_to.after())
    entries, size = stats.log.between(begin, last.after())
    if entries >= max(LEAST_ENTRIES, stats.compacted_entries) or size >= max(LEAST_BYTES, stats.compacted_bytes):
        return True
    return waited >= WAIT_SECONDS and entries * SMALLER_PART >= stats.compacted_entries
