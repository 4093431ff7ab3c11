from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio

from kafka_sidecar.internal_topics import shared_map, snapshot_shard
from kafka_sidecar.internal_topics.log_starts import LogStarts, log_starts
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from tests.support.internal_topic import InternalTopic
from tests.support.moved_starts import Open


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is looked up anew at every question."""
    monkeypatch.setattr(snapshot_shard, "LOOK_SECONDS", 0.0)


@pytest.fixture
def topic() -> InternalTopic:
    return InternalTopic()


@pytest_asyncio.fixture
async def opened(topic: InternalTopic, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    monkeypatch.setattr(shared_map, "LOOK_SECONDS", 0.02)
    there: list[LogStarts] = []

    def begin() -> LogStarts:
        there.append(
            log_starts(
                cast(Any, topic),
                cast(Any, topic),
                "public/__kafka",
                SYSTEM_CLOCK,
                new_id,
                lambda *moved: heard.append(moved),
            )
        )
        there[-1].start()
        return there[-1]

    heard: list[tuple[str, MovedStart]] = []
    yield begin
    for one in there:
        await one.close()
