"""How much of an internal topic Pulsar may take."""

from __future__ import annotations

import pytest

from kafka_sidecar.internal_topics.internal_storage import (
    FOR_EVER,
    LEAST_BYTES,
    LEAST_ENTRIES,
    WAIT_SECONDS,
    Retention,
    is_worth_compacting,
    may_free,
    retention_of,
    retention_without_own,
    what_moves_cursors,
)
from kafka_sidecar.pulsar.entry import CompactionStats, LedgerInfo, LogStats, Position


@pytest.mark.parametrize(
    ("version", "may"),
    [
        ("Pulsar Server4.2.4", True),
        ("Pulsar Server3.0.7", True),
        ("Pulsar Server2.10.4", True),
        ("2.10.5.3", True),
        ("2.11.1", True),
        ("Pulsar Server2.9.1", False),
        ("2.10.3", False),
        ("2.11.0", False),
        ("Pulsar Server", False),
        ("", False),
        (None, False),
    ],
)
def test_brokers_that_may_forget_what_is_compacted_free_nothing(version: str | None, may: bool) -> None:
    assert may_free(version) == may


def test_a_retention_is_what_brokers_take() -> None:
    assert retention_of(1_440) == Retention(1_440, -1)
    assert retention_of(0) == Retention(0, 0), "brokers refuse a single 0"
    assert retention_of(-1) == FOR_EVER
    assert [retention_of(minutes).is_finite for minutes in (1_440, 0, -1)] == [True, True, False]


def test_a_topic_without_a_retention_has_its_namespace_s_or_the_brokers() -> None:
    of_namespace = {"retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}}
    settings = {"defaultRetentionTimeInMinutes": "10080", "defaultRetentionSizeInMB": "-1"}
    assert retention_without_own(of_namespace, settings) == FOR_EVER
    assert retention_without_own({}, settings) == Retention(10_080, -1)
    assert retention_without_own({}, {}) == Retention(0, 0)


def stats(
    *ledgers: tuple[int, int, int],
    compacted_to: Position | None = None,
    ledger: int = -1,
    cursors: int | None = None,
    entries: int = 0,
    size: int = 0,
) -> CompactionStats:
    log = LogStats(tuple(LedgerInfo(*one) for one in ledgers))
    return CompactionStats(log, compacted_to, ledger, ledger if cursors is None else cursors, entries, size)


def test_what_is_compacted_is_held_by_a_cursor_that_names_its_ledger() -> None:
    assert not stats((1, 10, 1_000)).is_held
    assert not stats((1, 10, 1_000), compacted_to=Position(1, 9)).is_held
    assert stats((1, 10, 1_000), compacted_to=Position(1, 9), ledger=7).is_held
    assert not stats((1, 10, 1_000), compacted_to=Position(1, 9), ledger=7, cursors=-1).is_held, (
        "a message TTL has moved it"
    )


@pytest.mark.parametrize(
    ("found", "waited", "is_worth"),
    [
        (stats((1, LEAST_ENTRIES, 10_000)), 0.0, True),
        (stats((1, LEAST_ENTRIES - 1, 10_000)), 0.0, False),
        (stats((1, 8, LEAST_BYTES)), 0.0, True),
        (
            stats((1, 2 * LEAST_ENTRIES, 10_000), compacted_to=Position(1, 9), ledger=7, entries=2 * LEAST_ENTRIES),
            0.0,
            False,
        ),
        (stats((2, 10, 1_000), compacted_to=Position(2, 4), ledger=7, entries=20), WAIT_SECONDS - 1, False),
        (stats((2, 10, 1_000), compacted_to=Position(2, 4), ledger=7, entries=20), WAIT_SECONDS, True),
        (stats((2, 10, 1_000), compacted_to=Position(2, 4), ledger=7, entries=21), WAIT_SECONDS, False),
        (stats((2, 10, 1_000), compacted_to=Position(2, 9), ledger=7), WAIT_SECONDS, False),
        (stats((3, 10, 1_000), compacted_to=Position(1, 4), ledger=7), WAIT_SECONDS, True),
        (stats(compacted_to=Position(1, 4), ledger=7), WAIT_SECONDS, False),
    ],
)
def test_it_is_compacted_when_as_much_goes_as_is_left_or_after_a_while_a_part_of_it(
    found: CompactionStats, waited: float, is_worth: bool
) -> None:
    assert is_worth_compacting(found, waited) == is_worth


EVICTS = {"policy": "consumer_backlog_eviction", "limitSize": 1}
HOLDS = {"policy": "producer_request_hold", "limitSize": 1}
BY_DEFAULT = {"backlogQuotaDefaultRetentionPolicy": "consumer_backlog_eviction"}


@pytest.mark.parametrize(
    ("own", "policies", "settings", "said"),
    [
        ({}, {}, {}, []),
        (
            {},
            {"message_ttl_in_seconds": 0, "subscription_expiration_time_minutes": 0},
            {"ttlDurationDefaultInSeconds": "60"},
            [],
        ),
        ({}, {}, {"ttlDurationDefaultInSeconds": "60"}, ["TTL"]),
        ({}, {"message_ttl_in_seconds": 60}, {}, ["TTL"]),
        ({"message_ttl_in_seconds": 60}, {}, {}, ["TTL"]),
        ({"message_ttl_in_seconds": 0}, {"message_ttl_in_seconds": 60}, {}, []),
        ({}, {}, {"subscriptionExpirationTimeMinutes": "5"}, ["expire"]),
        ({}, {"backlog_quota_map": {"destination_storage": EVICTS}}, {}, ["evicts"]),
        ({}, {"backlog_quota_map": {"destination_storage": HOLDS}}, {}, []),
        ({"backlog_quota_map": {"message_age": EVICTS}}, {}, {}, ["evicts"]),
        (
            {"backlog_quota_map": {"destination_storage": HOLDS}},
            {"backlog_quota_map": {"destination_storage": EVICTS}},
            {},
            [],
        ),
        ({"backlog_quota_map": None}, {}, {"backlogQuotaDefaultLimitGB": "-1", **BY_DEFAULT}, []),
        ({}, {}, {"backlogQuotaDefaultLimitGB": "1.0", **BY_DEFAULT}, ["evicts"]),
        ({}, {}, {"backlogQuotaDefaultLimitSecond": "3600", **BY_DEFAULT}, ["evicts"]),
        (
            {},
            {"backlog_quota_map": {"message_age": HOLDS}},
            {"backlogQuotaDefaultLimitBytes": "1000000", **BY_DEFAULT},
            ["evicts"],
        ),
    ],
)
def test_what_moves_cursors_of_others_moves_that_of_compaction(
    own: dict[str, object], policies: dict[str, object], settings: dict[str, str], said: list[str]
) -> None:
    """Each kind of quota counts for itself: that of the topic, else of the namespace, else of the brokers."""
    found = list(what_moves_cursors(own, policies, settings))
    assert len(found) == len(said)
    assert all(word in text for word, text in zip(said, found, strict=True))
