"""DescribeConfigs, IncrementalAlterConfigs and AlterConfigs of topics and of the node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from unittest.mock import Mock

import pytest
import pytest_asyncio

from kafka_sidecar.config import KafkaConfig
from kafka_sidecar.model.sidecar import Endpoint
from kafka_sidecar.pulsar.errors import Refused, Unavailable
from kafka_sidecar.topics.config_store import AT_ONCE
from kafka_sidecar.topics.config_types import ConfigSource, Operation
from kafka_sidecar.topics.configs import MAX_MESSAGE_BYTES
from kafka_sidecar.topics.node_configs import describe_node
from kafka_sidecar.topics.record_configs import ENTRY_FORMAT
from kafka_sidecar.topics.retention import RETENTION_BYTES, RETENTION_MS
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages import alter_configs, incremental_alter_configs
from kafka_sidecar.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_sidecar.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.support.services import NAMESPACE, Sidecar

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
HOUR_MS = 3_600_000


@pytest_asyncio.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    one = Sidecar()
    one.admin.make("t")
    yield one
    await one.close()


async def described(sidecar: Sidecar, kind: int = TOPIC, name: str = "t", keys: Sequence[str] | None = None) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    (result,) = await as_told(sidecar, request)
    return result


async def as_told(sidecar: Sidecar, request: DescribeConfigsRequest) -> Sequence[DescribeConfigsResult]:
    """As a client reads it."""
    out = bytearray()
    (await sidecar.ask(request, 4)).write(4, out)
    return DescribeConfigsResponse.read(4, memoryview(out)).results


async def values(sidecar: Sidecar) -> dict[str, str]:
    return {config.name: config.value for config in (await described(sidecar)).configs}


async def incrementally(
    sidecar: Sidecar,
    *operations: tuple[str, Operation, str | None],
    name: str = "t",
    kind: int = TOPIC,
    validate_only: bool = False,
) -> tuple[ErrorCode, str | None]:
    configs = [
        incremental_alter_configs.AlterableConfig(name=one, config_operation=operation, value=value)
        for one, operation, value in operations
    ]
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=validate_only
    )
    (told,) = (await sidecar.ask(request, 1)).responses
    return told.error_code, told.error_message


async def replaced(sidecar: Sidecar, wanted: dict[str, str]) -> ErrorCode:
    configs = [alter_configs.AlterableConfig(name=name, value=value) for name, value in wanted.items()]
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=configs)
    (told,) = (
        await sidecar.ask(alter_configs.AlterConfigsRequest(resources=[resource], validate_only=False), 2)
    ).responses
    return ErrorCode(told.error_code)


async def test_what_was_set_is_described_with_what_would_hold_without_it(sidecar: Sidecar) -> None:
    assert await incrementally(
        sidecar, (RETENTION_MS, Operation.SET, str(HOUR_MS)), (ENTRY_FORMAT, Operation.SET, "pulsar")
    ) == (0, None)
    assert sidecar.admin.retentions == {NAMESPACE + "t": (60, 500)}
    assert sidecar.admin.properties[NAMESPACE + "t"] == {
        ENTRY_FORMAT: "pulsar",
        "kafka.retention": "retention.ms 60 500",
    }
    (config,) = (await described(sidecar, keys=[RETENTION_MS])).configs
    assert (config.value, config.config_source, config.read_only) == (str(HOUR_MS), ConfigSource.TOPIC_CONFIG, False)
    assert [(one.value, one.source) for one in config.synonyms] == [(str(HOUR_MS), 1), (str(24 * HOUR_MS), 5)]
    assert config.documentation


async def test_only_what_differs_is_written(sidecar: Sidecar) -> None:
    await incrementally(sidecar, (MAX_MESSAGE_BYTES, Operation.SET, "1000"))
    assert sidecar.admin.sizes == {NAMESPACE + "t": 1000}
    assert sidecar.admin.retentions == {}
    sidecar.admin.written = 0
    await incrementally(sidecar, (MAX_MESSAGE_BYTES, Operation.SET, "1000"), (RETENTION_BYTES, Operation.DELETE, None))
    assert sidecar.admin.written == 0


async def test_a_check_changes_nothing(sidecar: Sidecar) -> None:
    assert await incrementally(sidecar, (MAX_MESSAGE_BYTES, Operation.SET, "1000"), validate_only=True) == (0, None)
    code, why = await incrementally(sidecar, (RETENTION_MS, Operation.SET, "-7"), validate_only=True)
    assert code is ErrorCode.INVALID_CONFIG
    assert RETENTION_MS in (why or "")
    assert sidecar.admin.written == 0


async def test_nothing_is_written_if_one_of_the_configs_can_not_be(sidecar: Sidecar) -> None:
    code, _ = await incrementally(
        sidecar, (MAX_MESSAGE_BYTES, Operation.SET, "1000"), ("segment.bytes", Operation.SET, "0")
    )
    assert code is ErrorCode.INVALID_CONFIG
    assert sidecar.admin.written == 0


async def test_what_an_alteration_of_all_does_not_name_is_gone(sidecar: Sidecar) -> None:
    await replaced(sidecar, {RETENTION_MS: str(HOUR_MS), MAX_MESSAGE_BYTES: "1000", ENTRY_FORMAT: "pulsar"})
    assert await replaced(sidecar, {ENTRY_FORMAT: "pulsar"}) is ErrorCode.NONE
    assert (sidecar.admin.retentions, sidecar.admin.sizes) == ({}, {})
    assert (await values(sidecar))[ENTRY_FORMAT] == "pulsar"


async def test_partitions_are_told_of_the_format_with_each_alteration(sidecar: Sidecar) -> None:
    seen = []
    sidecar.catalog.on_record_configs = lambda topic: seen.append(topic.record_configs.entry_format)
    await sidecar.catalog.find(sidecar.catalog.names.parse("t"))
    await incrementally(sidecar, (ENTRY_FORMAT, Operation.SET, "pulsar"))
    await incrementally(sidecar, (ENTRY_FORMAT, Operation.DELETE, None))
    assert seen == [None, "pulsar", None]


async def test_a_broker_that_keeps_no_policies_of_topics_says_what_to_switch_on(sidecar: Sidecar) -> None:
    sidecar.admin.keeps_policies = False
    assert (await values(sidecar))[RETENTION_MS] == str(24 * HOUR_MS)
    code, why = await incrementally(sidecar, (RETENTION_MS, Operation.SET, str(HOUR_MS)))
    assert code is ErrorCode.INVALID_CONFIG
    assert why == "switch it on"


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "7", ErrorCode.INVALID_REQUEST),
        (16, "metrics", ErrorCode.INVALID_REQUEST),
        (TOPIC, "__change_events", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
async def test_what_is_not_there_has_no_configs(sidecar: Sidecar, kind: int, name: str, code: ErrorCode) -> None:
    assert (await described(sidecar, kind, name)).error_code is code
    assert (await incrementally(sidecar, (RETENTION_MS, Operation.SET, "-1"), kind=kind, name=name))[0] is code


async def test_a_node_tells_its_settings_as_they_are(sidecar: Sidecar) -> None:
    configs = (await described(sidecar, BROKER, "0")).configs
    assert all(config.read_only and config.documentation for config in configs)
    told = {config.name: config.value for config in configs}
    assert [name for name in told] == sorted(told)
    assert told["broker.rack"] is None
    for config in configs:
        assert [one.source for one in config.synonyms] == [ConfigSource.STATIC_BROKER_CONFIG], (
            "nobody knows what else it would be"
        )
    for name, value in {
        "broker.id": "0",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
        "inter.broker.protocol.version": "4.2-IV1",
        "num.partitions": "4",
        "default.replication.factor": "1",
        "log.retention.hours": "24",
        "log.retention.ms": "86400000",
        "log.retention.bytes": str(500 * 1024 * 1024),
        "message.max.bytes": "5242880",
        "min.insync.replicas": "2",
        "group.initial.rebalance.delay.ms": "3000",
        "offsets.topic.num.partitions": "8",
    }.items():
        assert told[name] == value, name


@pytest.mark.parametrize("is_external", [False, True])
async def test_a_node_tells_both_listeners_whichever_is_asked(is_external: bool) -> None:
    config = KafkaConfig(listen="0.0.0.0:9092", external_listen="0.0.0.0:9094", external_advertised="one.example:9094")
    sidecar = Sidecar(config=config)
    sidecar.client.is_external = is_external
    sidecar.client.local_address = Endpoint("10.0.0.1", 9094 if is_external else 9092)
    (found,) = (await described(sidecar, BROKER, "0", ["advertised.listeners"])).configs
    assert found.value == "PLAINTEXT://10.0.0.1:9092,EXTERNAL://one.example:9094"
    await sidecar.close()


async def test_a_node_tells_what_it_knows_itself_without_pulsar(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: str) -> None:
        raise Unavailable("no broker")

    monkeypatch.setattr(sidecar.admin, "namespace_policies", away)
    (found,) = (await described(sidecar, BROKER, "0", ["num.partitions"])).configs
    assert found.value == "4"
    assert (await described(sidecar, BROKER, "0")).error_code is not ErrorCode.NONE


async def test_a_resource_that_is_named_often_is_described_once(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    described_nodes = Mock(side_effect=describe_node)
    monkeypatch.setattr("kafka_sidecar.apis.a32_describe_configs.describe_node", described_nodes)
    node, topic = (
        DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in ((BROKER, "0"), (TOPIC, "t"))
    )
    keys = [
        DescribeConfigsResource(resource_type=BROKER, resource_name="0", configuration_keys=["node.id", f"k{number}"])
        for number in range(500)
    ]
    found = await as_told(sidecar, DescribeConfigsRequest(resources=[node, topic, *[node] * 500, *keys]))
    assert [one.resource_name for one in found] == [*["0"] * 501, "t"], "a result for each set of keys"
    assert {config.name for one in found[1:501] for config in one.configs} == {"node.id"}
    assert described_nodes.call_count == 1


async def test_a_request_for_many_topics_does_not_keep_another_waiting(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, reading = sidecar.services.configs, 0
    read = store.read

    async def counted(name: Any) -> Any:
        nonlocal reading
        reading += 1
        try:
            return await read(name)
        finally:
            reading -= 1

    monkeypatch.setattr(store, "read", counted)
    many = [DescribeConfigsResource(resource_type=TOPIC, resource_name=f"missing-{number}") for number in range(200)]
    asked = asyncio.create_task(as_told(sidecar, DescribeConfigsRequest(resources=many)))
    most = 0
    while not asked.done():
        most = max(most, reading)
        await asyncio.sleep(0)
    assert len(asked.result()) == 200
    assert 1 <= most <= AT_ONCE


@pytest.mark.parametrize("version", [0, 1])
async def test_a_refusal_that_repeats_long_names_is_cut_and_told(sidecar: Sidecar, version: int) -> None:
    configs = [
        incremental_alter_configs.AlterableConfig(name=name * 20_000, config_operation=Operation.SET, value="1")
        for name in ("ä", "b")
    ]
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=BROKER, resource_name="0", configs=configs)
    answer = await sidecar.ask(incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource]), version)
    out = bytearray()
    answer.write(version, out)
    (told,) = incremental_alter_configs.IncrementalAlterConfigsResponse.read(version, memoryview(out)).responses
    assert told.error_code is ErrorCode.INVALID_REQUEST
    assert "clients can't change them: ää" in (told.error_message or "")


async def test_nothing_is_set_for_all_nodes_at_once(sidecar: Sidecar) -> None:
    found = await described(sidecar, BROKER, "")
    assert (found.error_code, list(found.configs)) == (ErrorCode.NONE, [])


async def test_the_settings_of_a_node_can_not_be_changed(sidecar: Sidecar) -> None:
    code, message = await incrementally(sidecar, ("num.partitions", Operation.SET, "5"), kind=BROKER, name="0")
    assert code is ErrorCode.INVALID_REQUEST
    assert (message or "").endswith("clients can't change them: num.partitions")
    throttle = "leader.replication.throttled.rate"
    assert await incrementally(sidecar, (throttle, Operation.DELETE, None), kind=BROKER, name="0") == (
        ErrorCode.NONE,
        None,
    )


@pytest.mark.parametrize("fails", ["retention", "threshold"])
async def test_what_fails_half_way_is_put_back_and_can_be_done_again(sidecar: Sidecar, fails: str) -> None:
    sidecar.admin.properties[NAMESPACE + "t"] = {ENTRY_FORMAT: "pulsar"}
    method = {"retention": "set_retention", "threshold": "set_compaction_threshold"}[fails]
    works = getattr(sidecar.admin, method)

    async def refuses(*_: object) -> None:
        raise Refused("412 Retention Quota must exceed configured backlog quota")

    setattr(sidecar.admin, method, refuses)
    wanted = ("cleanup.policy", Operation.SET, "compact")
    assert (await incrementally(sidecar, wanted))[0] is ErrorCode.INVALID_CONFIG
    assert sidecar.admin.properties[NAMESPACE + "t"] == {ENTRY_FORMAT: "pulsar"}
    assert sidecar.admin.retentions == {}
    setattr(sidecar.admin, method, works)
    assert (await incrementally(sidecar, wanted))[0] is ErrorCode.NONE
    assert sidecar.admin.retentions == {NAMESPACE + "t": (-1, -1)}


@pytest.fixture
def quiet_loggers() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in ("kafka_sidecar", "kafka_sidecar.topics")}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


async def of_loggers(sidecar: Sidecar) -> dict[str, str]:
    return {config.name: config.value for config in (await described(sidecar, BROKER_LOGGER, "0")).configs}


@pytest.mark.usefixtures("quiet_loggers")
async def test_levels_of_loggers_are_changed_while_the_sidecar_runs(sidecar: Sidecar) -> None:
    assert (await of_loggers(sidecar))["kafka_sidecar.topics.catalog"] == "WARN"

    async def alter(*operations: tuple[str, Operation, str | None]) -> ErrorCode:
        return (await incrementally(sidecar, *operations, kind=BROKER_LOGGER, name="0"))[0]

    assert (
        await alter(("kafka_sidecar", Operation.SET, "DEBUG"), ("kafka_sidecar.topics", Operation.SET, "ERROR"))
        is ErrorCode.NONE
    )
    told = await of_loggers(sidecar)
    assert (told["kafka_sidecar.topics.catalog"], told["kafka_sidecar.loop.supervised"], told["root"]) == (
        "ERROR",
        "DEBUG",
        "WARN",
    )
    assert logging.getLogger("kafka_sidecar.topics.catalog").getEffectiveLevel() == logging.ERROR
    assert await alter(("kafka_sidecar.topics", Operation.DELETE, None)) is ErrorCode.NONE
    assert (await of_loggers(sidecar))["kafka_sidecar.topics.catalog"] == "DEBUG"
    refused = ErrorCode.INVALID_CONFIG
    assert (
        await alter(("kafka_sidecar", Operation.SET, "INFO"), ("kafka_sidecar.no.such", Operation.SET, "INFO"))
        is refused
    )
    assert await alter(("kafka_sidecar", Operation.SET, "LOUD")) is refused
    assert await alter(("root", Operation.DELETE, None)) is ErrorCode.INVALID_REQUEST
    assert await alter(("kafka_sidecar", Operation.APPEND, "INFO")) is ErrorCode.INVALID_REQUEST
    assert (await of_loggers(sidecar))["kafka_sidecar.loop.supervised"] == "DEBUG", "what is refused changes nothing"
    wanted = [alter_configs.AlterConfigsResource(resource_type=BROKER_LOGGER, resource_name="0", configs=[])]
    (answer,) = (await sidecar.ask(alter_configs.AlterConfigsRequest(resources=wanted), 2)).responses
    assert answer.error_code is ErrorCode.INVALID_REQUEST


async def created(sidecar: Sidecar, configs: dict[str, str]) -> Any:
    wanted = CreatableTopic(
        name="new",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
    (told,) = (await sidecar.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1_000), 7)).topics
    return told


async def test_a_topic_is_made_with_its_configs(sidecar: Sidecar) -> None:
    told = await created(
        sidecar, {ENTRY_FORMAT: "pulsar", RETENTION_BYTES: "1048576", "unclean.leader.election.enable": "false"}
    )
    assert told.error_code is ErrorCode.NONE
    assert sidecar.admin.properties[NAMESPACE + "new"] == {
        ENTRY_FORMAT: "pulsar",
        "kafka.retention": "retention.bytes 1440 1",
    }
    assert sidecar.admin.retentions == {NAMESPACE + "new": (1440, 1)}


async def test_a_topic_whose_configs_can_not_be_kept_is_not_made(sidecar: Sidecar) -> None:
    assert (await created(sidecar, {"segment.bytes": "0"})).error_code is ErrorCode.INVALID_CONFIG
    sidecar.admin.keeps_policies = False
    assert (await created(sidecar, {RETENTION_BYTES: "1048576"})).error_code is ErrorCode.INVALID_CONFIG
    assert NAMESPACE + "new" not in sidecar.admin.there


async def test_an_internal_topic_keeps_its_configs(sidecar: Sidecar) -> None:
    code, _ = await incrementally(sidecar, (MAX_MESSAGE_BYTES, Operation.SET, "1"), name="__consumer_offsets")
    assert code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    "operations",
    [
        [(RETENTION_MS, Operation.SET, "-1"), (RETENTION_MS, Operation.DELETE, None)],
        [(RETENTION_MS, Operation.SET, None)],
    ],
)
async def test_what_is_no_alteration_is_an_invalid_request(
    sidecar: Sidecar, operations: list[tuple[str, Operation, str | None]]
) -> None:
    assert (await incrementally(sidecar, *operations))[0] is ErrorCode.INVALID_REQUEST
    assert sidecar.admin.written == 0


async def test_a_topic_that_is_named_twice_is_altered_by_neither(sidecar: Sidecar) -> None:
    configs = [incremental_alter_configs.AlterableConfig(name=MAX_MESSAGE_BYTES, config_operation=0, value="1000")]
    twice = [
        incremental_alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=configs)
    ] * 2
    answer = await sidecar.ask(
        incremental_alter_configs.IncrementalAlterConfigsRequest(resources=twice, validate_only=False), 1
    )
    assert [one.error_code for one in answer.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert sidecar.admin.written == 0


async def test_alterations_that_come_at_once_both_hold(sidecar: Sidecar) -> None:
    await asyncio.gather(
        incrementally(sidecar, (RETENTION_MS, Operation.SET, str(HOUR_MS))),
        incrementally(sidecar, (RETENTION_BYTES, Operation.SET, "1048576")),
    )
    assert sidecar.admin.retentions == {NAMESPACE + "t": (60, 1)}
