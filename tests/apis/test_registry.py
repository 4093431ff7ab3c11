"""The list of APIs, the files they are in, and what their texts claim."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from kafka_sidecar.apis import APIS
from kafka_sidecar.apis.api import AnyApi


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_the_contract_in_the_file_is_what_is_registered(api: AnyApi) -> None:
    module = sys.modules[api.handle.__module__]
    text = module.__doc__ or ""
    versions = f"version {api.lowest}" if api.lowest == api.highest else f"versions {api.lowest} to {api.highest}"
    assert text.startswith(f"{api.name} ({api.key}), {versions}"), text.splitlines()[0]
    assert Path(module.__file__ or "").name.startswith(f"a{api.key:02d}_")


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_version_told_can_be_answered(api: AnyApi) -> None:
    for version in range(api.lowest, api.highest + 1):
        api.response().write(version, bytearray())


def test_what_changes_something_does_not_end_with_its_client() -> None:
    """Named one by one, so that a new API has to be thought of here."""
    changing = {
        "Produce",
        "OffsetCommit",
        "Heartbeat",
        "LeaveGroup",
        "ApiVersions",
        "CreateTopics",
        "DeleteTopics",
        "InitProducerId",
        "CreatePartitions",
        "DeleteGroups",
        "OffsetDelete",
        "ConsumerGroupHeartbeat",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "DeleteRecords",
        "UpdateFeatures",
        "AlterReplicaLogDirs",
        "ElectLeaders",
        "AlterPartitionReassignments",
        "AddPartitionsToTxn",
        "AddOffsetsToTxn",
        "EndTxn",
        "WriteTxnMarkers",
        "TxnOffsetCommit",
        # These are answered at once.
        "SaslHandshake",
        "SaslAuthenticate",
        "DescribeAcls",
        "CreateAcls",
        "DeleteAcls",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "DescribeDelegationToken",
        "DescribeClientQuotas",
        "AlterClientQuotas",
        "DescribeUserScramCredentials",
        "AlterUserScramCredentials",
    }
    assert {api.name for api in APIS if not api.ends_with_client} == changing


def test_no_python_hides_grpcio_and_generated_code_is_where_it_belongs() -> None:
    root = Path(__file__).parents[2]
    assert not list((root / "grpc").rglob("*.py"))
    fields = re.findall(
        r"^message (\w+)", (root / "grpc/kafka_sidecar/pulsar/pulsar_api.proto").read_text(), re.MULTILINE
    )
    generated = (root / "handler/kafka_sidecar/pulsar/pulsar_api_pb2.pyi").read_text()
    assert all(f"class {name}(" in generated for name in fields)


def test_every_api_that_is_passed_on_is_taken_by_the_sidecar_that_it_is_passed_on_to() -> None:
    apis = Path(__file__).parents[2] / "handler/kafka_sidecar/apis"
    passed_on = {path for path in apis.glob("a*_*.py") if re.search("to_coordinator|ask_peer", path.read_text())}
    assert {int(path.name[1:3]) for path in passed_on} == {api.key for api in APIS if api.is_passed_on}
