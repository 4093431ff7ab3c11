"""One topic, by Pulsar's two answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import pytest

from kafka_sidecar.pulsar.admin import DescribedTopic
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, TopicMissing, Unavailable, Undescribed
from kafka_sidecar.topics.description import described
from kafka_sidecar.topics.names import TopicName

NAME = TopicName("public", "default", "t")
AWAY = Unavailable("500")  # what a broker says of a log that isn't there


@dataclass
class Admin:
    partitions: int | PulsarError = 3
    created: str | PulsarError = "monday"
    slow: str = ""

    @property
    def topics(self) -> Admin:
        return self

    async def describe(self, topic: str) -> DescribedTopic:
        await asyncio.sleep(0.01 * (self.slow == "describe"))
        if isinstance(self.partitions, PulsarError):
            raise self.partitions
        return DescribedTopic(self.partitions, {})

    async def created_at(self, log: str) -> str:
        await asyncio.sleep(0.01 * (self.slow == "created_at"))
        if isinstance(self.created, PulsarError):
            raise self.created
        return self.created


async def ask(admin: Admin) -> tuple[DescribedTopic, str]:
    return await described(cast(Any, admin), NAME)


@pytest.mark.parametrize("partitions", [0, 3])
async def test_a_topic_has_partitions_and_a_time(partitions: int) -> None:
    found, created = await ask(Admin(partitions))
    assert (found.partitions, created) == (partitions, "monday")


@pytest.mark.parametrize("slow", ["describe", "created_at"])
async def test_a_topic_that_is_not_there_is_missing_whichever_answer_comes_first(slow: str) -> None:
    with pytest.raises(TopicMissing):
        await ask(Admin(TopicMissing("404"), AWAY, slow))


@pytest.mark.parametrize("partitions", [0, 3])
async def test_a_topic_whose_log_does_not_answer_is_undescribed(partitions: int) -> None:
    with pytest.raises(Undescribed):
        await ask(Admin(partitions, AWAY))


@pytest.mark.parametrize("answer", [AWAY, NotPermitted("403")])
async def test_that_it_can_not_be_asked_for_is_what_it_is(answer: PulsarError) -> None:
    with pytest.raises(type(answer)) as raised:
        await ask(Admin(answer))
    assert raised.value is answer
