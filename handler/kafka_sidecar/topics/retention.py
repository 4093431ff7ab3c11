"""Kafka's two retention limits and Pulsar's retention policy. Pure.

Pulsar has both limits or none. So the topic says in a property which of them were set, and to what; of a policy that
was made by Pulsar's own tools both were. A limit that is not set is what the namespace says; where that keeps nothing
it is no limit, for Pulsar takes no policy in which one limit keeps nothing and the other something. Of a topic that is
only compacted nothing is to be removed: the policy is without limits, and what was set is kept in the property until it
counts again.

Pulsar keeps whole minutes and MiB: what is given is rounded up, and shown as it was given. Streams makes topics with
limits to the millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka_sidecar.topics.config_types import number
from kafka_sidecar.topics.record_configs import MAX_INT

RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
LIMITS: Final = (RETENTION_MS, RETENTION_BYTES)
# The topic property that records which limits of the retention policy were set.
RETENTION_SET: Final = "kafka.retention"
UNLIMITED: Final = -1
MAX_LONG: Final = 2**63 - 1
_MINUTE_MS: Final = 60_000
_MIB: Final = 1024 * 1024


class Retention(NamedTuple):
    """Pulsar's retention policy: what is acknowledged, or has no subscription, is kept within both limits."""

    minutes: int
    megabytes: int

    @property
    def ms(self) -> str:
        return str(UNLIMITED if self.minutes == UNLIMITED else self.minutes * _MINUTE_MS)

    @property
    def bytes(self) -> str:
        return str(UNLIMITED if self.megabytes == UNLIMITED else self.megabytes * _MIB)


# Pulsar's default retention: acknowledged messages are deleted.
KEEPS_NOTHING: Final = Retention(0, 0)
KEEPS_ALL: Final = Retention(UNLIMITED, UNLIMITED)


class Limits(NamedTuple):
    """The limits that a topic has of its own, and their values with those that hold without them."""

    own: Mapping[str, str]  # config name → value as the client gave it
    retention: Retention


def limits_of(
    kept: Retention | None, properties: Mapping[str, str], default: Retention, *, compacted_only: bool
) -> Limits:
    """What a client gets. `kept`: the topic's policy, None where it has none."""
    if kept is None:
        return Limits({}, default)
    said = _read(properties.get(RETENTION_SET, ""))
    if said is not None and (said.retention == kept or (compacted_only and kept == KEEPS_ALL)):
        return said
    if compacted_only and kept == KEEPS_ALL:
        return Limits({}, default)
    # Somebody set this policy with Pulsar's own tools.
    return Limits({RETENTION_MS: kept.ms, RETENTION_BYTES: kept.bytes}, kept)


def with_limits(before: Limits, changes: Mapping[str, str | None], default: Retention) -> Limits:
    """After setting, or deleting (None), one limit or both."""
    minutes = before.retention.minutes if RETENTION_MS in before.own else default.minutes
    megabytes = before.retention.megabytes if RETENTION_BYTES in before.own else default.megabytes
    if RETENTION_MS in changes:
        minutes = _limit(RETENTION_MS, changes[RETENTION_MS], default.minutes)
    if RETENTION_BYTES in changes:
        megabytes = _limit(RETENTION_BYTES, changes[RETENTION_BYTES], default.megabytes)
    own = {name: str(int(value)) for name, value in {**before.own, **changes}.items() if value is not None}
    if not own:
        return Limits({}, default)
    if minutes or megabytes:  # Pulsar refuses a policy in which only one limit is 0, so the 0 becomes unlimited
        minutes, megabytes = minutes or UNLIMITED, megabytes or UNLIMITED
    return Limits(own, Retention(minutes, megabytes))


def policy_of(limits: Limits, *, compacted_only: bool) -> Retention | None:
    """The topic's policy in Pulsar."""
    if compacted_only:
        return KEEPS_ALL
    return limits.retention if limits.own else None


def said_of(limits: Limits) -> str | None:
    """The property that goes with it."""
    if not limits.own:
        return None
    rounded = {RETENTION_MS: limits.retention.ms, RETENTION_BYTES: limits.retention.bytes}
    names = [name if value == rounded[name] else f"{name}={value}" for name, value in sorted(limits.own.items())]
    return f"{','.join(names)} {limits.retention.minutes} {limits.retention.megabytes}"


def _read(said: str) -> Limits | None:
    try:
        names, minutes, megabytes = said.split(" ")
        retention = Retention(int(minutes), int(megabytes))
        rounded = {RETENTION_MS: retention.ms, RETENTION_BYTES: retention.bytes}
        given = [one.partition("=") for one in names.split(",")]
        own = {name: value or rounded.get(name, "") for name, _, value in given}
        return Limits(own, retention) if own.keys() <= rounded.keys() else None
    except ValueError:
        return None


def _limit(name: str, value: str | None, default: int) -> int:
    """A limit in Pulsar's unit; at least one of it, for 0 is no limit there."""
    if value is None:
        return default
    unit = _MINUTE_MS if name == RETENTION_MS else _MIB
    given = number(name, value, UNLIMITED, MAX_LONG)
    if given == UNLIMITED or given > MAX_INT * unit:  # Debezium sets the largest number for no limit
        return UNLIMITED
    return max(-(-given // unit), 1)
