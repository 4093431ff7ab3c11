"""Whether a broker is believed that says a topic is missing."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from handler.pulsar.errors import NotPermitted, PulsarError, TopicMissing, Unavailable
from handler.topics.known_namespaces import GONE_SECONDS, KNOWN_SECONDS, PAUSE_SECONDS, KnownNamespaces

EXPECTED, ANOTHER = "public/default", "team/elsewhere"


class Broker:
    def __init__(self, says: PulsarError | None) -> None:
        self.says = says
        self.questions = 0
        self.now = 0.0

    @property
    def cluster(self) -> Broker:
        return self

    async def namespace_policies(self, _: str) -> dict[str, Any]:
        self.questions += 1
        await asyncio.sleep(0)
        if self.says is not None:
            raise self.says
        return {}

    def namespaces(self) -> KnownNamespaces:
        return KnownNamespaces(cast(Any, self), [EXPECTED], lambda: self.now)


@pytest.mark.parametrize("says", [None, NotPermitted("not you")])
async def test_a_broker_that_knows_the_namespace_is_believed_and_not_asked_again_at_once(says: PulsarError | None) -> None:
    broker = Broker(says)
    namespaces = broker.namespaces()
    await asyncio.gather(*(namespaces.check(EXPECTED) for _ in range(100)))
    await namespaces.check(EXPECTED)
    assert broker.questions == 1
    await namespaces.check_anew(EXPECTED)
    broker.now += KNOWN_SECONDS
    await namespaces.check(EXPECTED)
    assert broker.questions == 3


async def test_a_broker_that_does_not_know_a_namespace_that_has_to_be_there_is_not_believed() -> None:
    broker = Broker(TopicMissing("404"))
    namespaces = broker.namespaces()
    with pytest.raises(Unavailable, match=f"the namespace {EXPECTED} is missing"):
        await namespaces.check(EXPECTED)
    broker.says = None
    await namespaces.check(EXPECTED)


async def test_a_namespace_that_nobody_has_seen_may_be_missing() -> None:
    broker = Broker(TopicMissing("404"))
    namespaces = broker.namespaces()
    await namespaces.check(ANOTHER)
    broker.says = None
    await namespaces.check(ANOTHER)
    broker.says, broker.now = TopicMissing("404"), 2 * KNOWN_SECONDS
    with pytest.raises(Unavailable):
        await namespaces.check(ANOTHER)


async def test_a_namespace_is_gone_when_that_was_said_for_half_a_minute() -> None:
    broker = Broker(TopicMissing("404"))
    namespaces = broker.namespaces()
    while broker.now < GONE_SECONDS:
        with pytest.raises(Unavailable):
            await namespaces.check(EXPECTED)
        broker.now += PAUSE_SECONDS / 2
    await namespaces.check(EXPECTED)


async def test_who_can_not_be_asked_says_nothing() -> None:
    broker = Broker(Unavailable("no broker"))
    with pytest.raises(Unavailable):
        await broker.namespaces().check(ANOTHER)
