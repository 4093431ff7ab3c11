"""Topic configs: what Pulsar keeps is what a client is told, and what can't be kept is refused."""

from __future__ import annotations

import pytest

from handler.topics.configs import (
    ENTRY_FORMAT,
    MAX_MESSAGE_BYTES,
    RETENTION_BYTES,
    RETENTION_MS,
    Config,
    ConfigSource,
    InvalidConfig,
    Operation,
    Retention,
    TopicSettings,
    altered,
    describe,
    entry_format,
    set_here,
)

SET, DELETE, APPEND, SUBTRACT = Operation
HOUR_MS = 3_600_000
MIB = 1024 * 1024


def told(settings: TopicSettings, name: str) -> Config:
    return next(config for config in describe(settings) if config.name == name)


def test_what_the_topic_does_not_say_is_what_holds_without_it() -> None:
    settings = TopicSettings(default_retention=Retention(60, 500), default_max_message_bytes=7, default_entry_format="pulsar")
    values = {config.name: config.value for config in describe(settings)}
    assert values[RETENTION_MS] == str(HOUR_MS)
    assert values[RETENTION_BYTES] == str(500 * MIB)
    assert values[MAX_MESSAGE_BYTES] == "7"
    assert values[ENTRY_FORMAT] == "pulsar"
    assert set_here(settings) == []


def test_what_is_set_is_told_and_taken_back() -> None:
    settings = TopicSettings(default_retention=Retention(60, 500))
    wanted = {RETENTION_MS: str(2 * HOUR_MS), RETENTION_BYTES: "-1", MAX_MESSAGE_BYTES: "1000", ENTRY_FORMAT: "pulsar"}
    there = altered(settings, [(name, SET, value) for name, value in wanted.items()])
    for name, value in wanted.items():
        config = told(there, name)
        assert (config.value, config.source) == (value, ConfigSource.TOPIC_CONFIG)
    assert sorted(set_here(there)) == sorted(wanted)
    assert told(there, RETENTION_MS).default == str(HOUR_MS)
    assert altered(there, [(name, DELETE, None) for name in wanted]) == settings


@pytest.mark.parametrize("default", [Retention(0, 0), Retention(60, 500), Retention(-1, -1)])
@pytest.mark.parametrize("order", [(RETENTION_MS, RETENTION_BYTES), (RETENTION_BYTES, RETENTION_MS)])
def test_without_both_limits_the_topic_has_no_retention_of_its_own(default: Retention, order: tuple[str, str]) -> None:
    settings = TopicSettings(default_retention=default, retention=Retention(60, 100))
    one = altered(settings, [(order[0], DELETE, None)])
    assert one.retention is not None
    assert altered(one, [(order[1], DELETE, None)]).retention is None


def test_one_limit_leaves_the_other_as_it_is() -> None:
    kept = altered(TopicSettings(default_retention=Retention(60, 500)), [(RETENTION_MS, SET, str(HOUR_MS * 3))])
    assert kept.retention == Retention(180, 500)


def test_a_limit_that_keeps_nothing_is_none_beside_one_that_keeps_something() -> None:
    """Pulsar's default, 0 and 0, means that nothing is kept. With one of them alone its brokers refuse the other."""
    assert altered(TopicSettings(), [(RETENTION_MS, SET, str(HOUR_MS))]).retention == Retention(60, -1)
    assert altered(TopicSettings(), [(RETENTION_BYTES, SET, str(MIB))]).retention == Retention(-1, 1)


@pytest.mark.parametrize(
    ("name", "operation", "value", "says"),
    [
        (RETENTION_MS, SET, "1000", "60000"),
        (RETENTION_MS, SET, "0", "-1"),
        (RETENTION_MS, SET, "-2", "must be"),
        (RETENTION_BYTES, SET, "1000000", "1048576"),
        (RETENTION_BYTES, SET, "much", "write a number"),
        (MAX_MESSAGE_BYTES, SET, "0", "must be"),
        (MAX_MESSAGE_BYTES, SET, None, "needs a value"),
        (ENTRY_FORMAT, SET, "avro", "kafka or pulsar"),
        (ENTRY_FORMAT, APPEND, "kafka", "no list"),
        ("cleanup.policy", SET, "compact", "cleanup.policy is delete"),
        ("cleanup.policy", SUBTRACT, "delete", "cleanup.policy is delete"),
        ("compression.type", SET, "zstd", "producer"),
        ("segment.bytes", SET, "1", "segment.bytes is no topic config"),
    ],
)
def test_what_can_not_be_kept_is_refused_by_what_to_change(name: str, operation: Operation, value: str | None, says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        altered(TopicSettings(), [(name, operation, value)])


def test_a_config_that_is_named_twice_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="twice"):
        altered(TopicSettings(), [(ENTRY_FORMAT, SET, "kafka"), (ENTRY_FORMAT, DELETE, None)])


@pytest.mark.parametrize("operation", [SET, APPEND, DELETE])
def test_what_holds_for_every_topic_may_be_set_to_what_it_is(operation: Operation) -> None:
    value = None if operation is DELETE else "delete"
    assert altered(TopicSettings(), [("cleanup.policy", operation, value)]) == TopicSettings()


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({}, None),
        ({ENTRY_FORMAT: "pulsar"}, "pulsar"),
        ({"kafkaEntryFormat": "mixed_kafka"}, "kafka"),
        ({"kafkaEntryFormat": "pulsar"}, "pulsar"),
        ({ENTRY_FORMAT: "kafka", "kafkaEntryFormat": "pulsar"}, "kafka"),
        ({ENTRY_FORMAT: "of tomorrow"}, None),
    ],
)
def test_the_entry_format_is_what_the_properties_say(properties: dict[str, str], named: str | None) -> None:
    assert entry_format(properties) == named


def test_deleting_the_entry_format_deletes_that_of_kafka_on_pulsar_too() -> None:
    settings = TopicSettings(properties={"kafkaEntryFormat": "pulsar", "owner": "me"})
    assert altered(settings, [(ENTRY_FORMAT, DELETE, None)]).properties == {"owner": "me"}
