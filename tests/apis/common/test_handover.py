"""Partitions are opened by who is about to lead them."""

from __future__ import annotations

import pytest

from kafka_sidecar.apis.common import handover
from kafka_sidecar.apis.common.handover import warm
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.services import NAMESPACE, Sidecar


async def test_all_that_are_named_are_open_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "AT_ONCE", 2)
    sidecar = Sidecar()
    sidecar.admin.make("t", 5)
    await sidecar.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    wanted = [f"{NAMESPACE}t-partition-{index}" for index in range(5)]
    await warm(sidecar.services, [*wanted, "not a partition", f"{NAMESPACE}t-partition-x"])
    found = [sidecar.services.partitions.existing(name) for name in wanted]
    assert [one is not None and one.is_open for one in found] == [True] * 5
    assert sorted(sidecar.services.partitions.names()) == wanted
    await sidecar.close()
