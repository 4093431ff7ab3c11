"""Topic configs: what Pulsar keeps is what a client is told, and what can't be kept is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_sidecar.topics.config_types import Config, ConfigSource, InvalidConfig, Operation
from kafka_sidecar.topics.configs import (
    COMPACTION_THRESHOLD,
    MAX_MESSAGE_BYTES,
    Quorums,
    TopicSettings,
    altered,
    describe,
    set_here,
)
from kafka_sidecar.topics.record_configs import ENTRY_FORMAT, RecordConfigs, entry_format, record_configs
from kafka_sidecar.topics.retention import RETENTION_BYTES, RETENTION_MS, Retention

SET, DELETE, APPEND, SUBTRACT = Operation
HOUR_MS = 3_600_000
MIB = 1024 * 1024


def told(settings: TopicSettings, name: str) -> Config:
    return next(config for config in describe(settings) if config.name == name)


def test_what_the_topic_does_not_say_is_what_holds_without_it() -> None:
    settings = TopicSettings(
        default_retention=Retention(60, 500), default_max_message_bytes=7, default_entry_format="pulsar"
    )
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


@pytest.mark.parametrize(
    ("default", "without_ms", "without_bytes"),
    [
        (
            Retention(0, 0),
            Retention(-1, 100),
            Retention(60, -1),
        ),  # what is kept without a limit is never less than with it
        (Retention(30, 500), Retention(30, 100), Retention(60, 500)),
        (Retention(-1, -1), Retention(-1, 100), Retention(60, -1)),
    ],
)
@pytest.mark.parametrize("made_by", ["a Kafka tool", "a Pulsar tool"])
def test_a_limit_that_is_deleted_is_the_namespaces_again(
    default: Retention, without_ms: Retention, without_bytes: Retention, made_by: str
) -> None:
    nothing = TopicSettings(default_retention=default)
    settings = altered(nothing, [(RETENTION_MS, SET, str(HOUR_MS)), (RETENTION_BYTES, SET, str(100 * MIB))])
    if made_by == "a Pulsar tool":
        settings = TopicSettings(default_retention=default, retention=Retention(60, 100))
    for first, second, left in (
        (RETENTION_MS, RETENTION_BYTES, without_ms),
        (RETENTION_BYTES, RETENTION_MS, without_bytes),
    ):
        one = altered(settings, [(first, DELETE, None)])
        assert one.retention == left
        assert altered(one, [(second, DELETE, None)]) == nothing
        assert altered(settings, [(first, DELETE, None), (second, DELETE, None)]) == nothing
        assert altered(nothing, [(first, DELETE, None)]) == nothing


def test_a_limit_that_nobody_has_set_is_told_as_what_it_is_and_not_as_the_topics() -> None:
    settings = altered(TopicSettings(), [(RETENTION_MS, SET, str(HOUR_MS))])
    assert (told(settings, RETENTION_BYTES).value, told(settings, RETENTION_BYTES).source) == (
        "-1",
        ConfigSource.DEFAULT_CONFIG,
    )
    assert set_here(settings) == [RETENTION_MS]


def test_a_policy_that_another_tool_made_since_is_the_topics_with_both_limits() -> None:
    settings = replace(altered(TopicSettings(), [(RETENTION_MS, SET, str(HOUR_MS))]), retention=Retention(100, 50))
    assert set_here(settings) == [RETENTION_MS, RETENTION_BYTES]
    assert altered(settings, [(RETENTION_MS, DELETE, None)]).retention == Retention(-1, 50)


def test_a_topic_with_one_limit_is_without_retention_when_it_is_deleted() -> None:
    settings = altered(TopicSettings(), [(RETENTION_MS, SET, str(HOUR_MS))])
    assert settings.retention == Retention(60, -1)
    assert altered(settings, [(RETENTION_MS, DELETE, None)]) == TopicSettings()


def test_what_was_to_be_kept_for_ever_is_kept_when_the_other_limit_is_deleted() -> None:
    settings = altered(TopicSettings(), [(RETENTION_MS, SET, "-1"), (RETENTION_BYTES, SET, str(1024 * MIB))])
    assert altered(settings, [(RETENTION_BYTES, DELETE, None)]).retention == Retention(-1, -1)


def test_one_limit_leaves_the_other_as_it_is() -> None:
    kept = altered(TopicSettings(default_retention=Retention(60, 500)), [(RETENTION_MS, SET, str(HOUR_MS * 3))])
    assert kept.retention == Retention(180, 500)


def test_a_limit_that_keeps_nothing_is_none_beside_one_that_keeps_something() -> None:
    """Pulsar's default, 0 and 0, means that nothing is kept. With one of them alone its brokers refuse the other."""
    assert altered(TopicSettings(), [(RETENTION_MS, SET, str(HOUR_MS))]).retention == Retention(60, -1)
    assert altered(TopicSettings(), [(RETENTION_BYTES, SET, str(MIB))]).retention == Retention(-1, 1)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        (RETENTION_MS, "86430000", Retention(1_441, -1)),  # the changelog of Streams' windows of 30 seconds
        (RETENTION_MS, "1000", Retention(1, -1)),
        (RETENTION_MS, "0", Retention(1, -1)),
        (RETENTION_BYTES, "1000000", Retention(-1, 1)),
        (RETENTION_BYTES, "1048577", Retention(-1, 2)),
        (RETENTION_MS, "9223372036854775807", Retention(-1, -1)),  # the history of Debezium's schemas
        (RETENTION_BYTES, "9223372036854775807", Retention(-1, -1)),
    ],
)
def test_a_limit_is_rounded_up_and_told_as_it_was_given(name: str, given: str, kept: Retention) -> None:
    settings = altered(TopicSettings(), [(name, SET, given)])
    assert settings.retention == kept
    assert (told(settings, name).value, set_here(settings)) == (given, [name])
    other = RETENTION_BYTES if name == RETENTION_MS else RETENTION_MS
    assert told(altered(settings, [(other, SET, str(HOUR_MS))]), name).value == given
    assert altered(settings, [(name, DELETE, None)]) == TopicSettings()


@pytest.mark.parametrize(
    ("name", "operation", "value", "says"),
    [
        (RETENTION_MS, SET, "-2", "must be"),
        (RETENTION_BYTES, SET, "much", "write a number"),
        (MAX_MESSAGE_BYTES, SET, "0", "must be"),
        (MAX_MESSAGE_BYTES, SET, None, "needs a value"),
        (ENTRY_FORMAT, SET, "avro", "kafka or pulsar"),
        (ENTRY_FORMAT, APPEND, "kafka", "no list"),
        ("cleanup.policy", SET, "shrink", "use delete, compact, or both"),
        ("cleanup.policy", SUBTRACT, "delete", "use delete, compact, or both"),
        ("compression.type", SET, "brotli", "lz4 or zstd"),
        ("message.timestamp.type", SET, "Never", "CreateTime or LogAppendTime"),
        ("message.timestamp.after.max.ms", SET, "-1", "must be"),
        ("min.cleanable.dirty.ratio", SET, "2", "0 to 1"),
        ("segment.bytes", SET, "0", "must be"),
        ("min.insync.replicas", SET, "3", "is 2 for every topic"),
        ("remote.storage.enable", SET, "true", "remote.storage.enable is no topic config"),
    ],
)
def test_what_can_not_be_kept_is_refused_by_what_to_change(
    name: str, operation: Operation, value: str | None, says: str
) -> None:
    with pytest.raises(InvalidConfig, match=says):
        altered(TopicSettings(), [(name, operation, value)])


@pytest.mark.parametrize("name", ["follower.replication.throttled.replicas", "local.retention.ms"])
def test_what_is_no_config_here_may_be_deleted(name: str) -> None:
    assert altered(TopicSettings(), [(name, DELETE, None)]) == TopicSettings()


def test_less_replicas_than_there_are_may_be_asked_for() -> None:
    """ksqlDB always asks for one."""
    settings = altered(TopicSettings(), [("min.insync.replicas", SET, "1")])
    assert (settings, told(settings, "min.insync.replicas").value) == (TopicSettings(), "2")


@pytest.mark.parametrize("operation", [SET, APPEND, DELETE])
def test_what_holds_for_every_topic_may_be_set_to_what_it_is(operation: Operation) -> None:
    value = None if operation is DELETE else "2"
    assert altered(TopicSettings(), [("min.insync.replicas", operation, value)]) == TopicSettings()


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


def test_what_is_asked_of_records_is_in_properties() -> None:
    wanted = {
        "cleanup.policy": "compact,delete",
        "compression.type": "zstd",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": "5",
        "message.timestamp.after.max.ms": "6",
        ENTRY_FORMAT: "kafka",
    }
    settings = altered(TopicSettings(), [(name, SET, value) for name, value in wanted.items()])
    assert settings == TopicSettings(properties=wanted)
    assert record_configs(settings.properties) == RecordConfigs("kafka", "zstd", True, True, 5, 6)
    assert altered(settings, [(name, DELETE, None) for name in wanted]) == TopicSettings()


def test_properties_that_nobody_understands_ask_nothing() -> None:
    odd = {
        "cleanup.policy": "x",
        "compression.type": "x",
        "message.timestamp.type": "x",
        "message.timestamp.before.max.ms": "x",
    }
    assert record_configs(odd) == record_configs({})


def test_the_cleanup_policy_is_a_list() -> None:
    both = altered(TopicSettings(), [("cleanup.policy", APPEND, "compact")])
    assert both.properties == {"cleanup.policy": "delete,compact"}
    assert altered(both, [("cleanup.policy", APPEND, "compact")]) == both
    assert altered(both, [("cleanup.policy", SUBTRACT, "compact")]).properties == {"cleanup.policy": "delete"}


def test_nothing_is_removed_from_a_topic_that_is_only_compacted_and_its_limits_count_again_later() -> None:
    limited = altered(TopicSettings(), [(RETENTION_MS, SET, str(HOUR_MS))])
    compacted = altered(limited, [("cleanup.policy", SET, "compact")])
    assert compacted.retention == Retention(-1, -1)
    assert (told(compacted, RETENTION_MS).value, set_here(compacted)) == (
        str(HOUR_MS),
        ["cleanup.policy", RETENTION_MS],
    )
    longer = altered(compacted, [(RETENTION_MS, SET, str(2 * HOUR_MS))])
    assert longer.retention == Retention(-1, -1)
    assert altered(longer, [("cleanup.policy", SET, "compact,delete")]).retention == Retention(120, -1)
    assert altered(compacted, [("cleanup.policy", DELETE, None)]) == limited
    bare = altered(TopicSettings(), [("cleanup.policy", SET, "compact")])
    assert (bare.retention, set_here(bare)) == (Retention(-1, -1), ["cleanup.policy"])
    assert altered(bare, [("cleanup.policy", DELETE, None)]) == TopicSettings()


@pytest.mark.parametrize("by_default", [False, True])
def test_pulsar_compacts_what_is_compacted_and_in_its_own_format(by_default: bool) -> None:
    nothing = (
        TopicSettings(default_entry_format="pulsar")
        if by_default
        else TopicSettings(properties={ENTRY_FORMAT: "pulsar"})
    )
    compacted = altered(nothing, [("cleanup.policy", SET, "compact,delete")])
    assert compacted.compaction_threshold == COMPACTION_THRESHOLD
    assert altered(compacted, [(ENTRY_FORMAT, SET, "kafka")]).compaction_threshold is None
    assert altered(compacted, [("cleanup.policy", DELETE, None)]) == nothing
    theirs = replace(nothing, compaction_threshold=7)
    assert altered(theirs, [("cleanup.policy", SET, "compact")]).compaction_threshold == 7
    assert altered(theirs, [("segment.ms", SET, "5")]).compaction_threshold == 7
    same = replace(nothing, compaction_threshold=COMPACTION_THRESHOLD)
    assert altered(same, [("segment.ms", SET, "5")]).compaction_threshold == COMPACTION_THRESHOLD, "somebody else's too"


def test_the_quorums_are_told() -> None:
    settings = TopicSettings(quorums=Quorums(5, 3, 2))
    names = ("min.insync.replicas", "pulsar.write.quorum", "pulsar.ensemble.size")
    assert [told(settings, name).value for name in names] == ["2", "3", "5"]


def test_a_policy_of_compaction_that_somebody_else_has_set_gets_its_retention_when_it_is_set_again() -> None:
    theirs = TopicSettings(properties={"cleanup.policy": "compact"}, retention=Retention(60, 100))
    assert altered(theirs, [("cleanup.policy", SET, "compact")]).retention == Retention(-1, -1)


def test_a_limit_that_is_not_the_topics_follows_its_namespace() -> None:
    settings = altered(
        TopicSettings(default_retention=Retention(1_440, 500)), [(RETENTION_BYTES, SET, str(1024 * MIB))]
    )
    later = replace(settings, default_retention=Retention(10_080, 500))
    assert altered(later, [(RETENTION_BYTES, SET, str(1024 * MIB))]).retention == Retention(10_080, 1024)


def test_a_topic_that_keeps_nothing_does_so_again_after_it_was_compacted() -> None:
    nothing = TopicSettings(default_retention=Retention(60, 100), retention=Retention(0, 0))
    compacted = altered(nothing, [("cleanup.policy", SET, "compact")])
    assert compacted.retention == Retention(-1, -1)
    assert altered(compacted, [("cleanup.policy", DELETE, None)]).retention == Retention(0, 0)
