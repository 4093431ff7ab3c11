"""`doctor --topics`."""

from __future__ import annotations

from typing import Any, cast

from kafka_sidecar.config import GroupsConfig, KafkaConfig
from kafka_sidecar.doctor.cluster import Finding, Severity
from kafka_sidecar.doctor.topics import examine_topics
from kafka_sidecar.pulsar.errors import NotPermitted


class ForbiddenCatalog:
    async def list_names(self) -> list[Any]:
        raise NotPermitted("public/default may not be listed")


async def test_topics_that_can_not_be_looked_at_are_a_fault() -> None:
    nobody = cast(Any, None)
    found = [
        one
        async for one in examine_topics(nobody, nobody, cast(Any, ForbiddenCatalog()), KafkaConfig(), GroupsConfig())
    ]
    assert found == [Finding(Severity.FAULT, "topics", "they can't be looked at: public/default may not be listed")]
