"""A missing right is believed when a broker has told it for half a minute, and nothing else."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import pytest

from kafka_sidecar.internal_topics.refusals import Refusals
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable

REFUSED = NotPermitted("a right that this role has not")


class Ask(Protocol):
    """Ask at a second, with an outcome: an error, or an answer that proves the right or not."""

    def __call__(
        self, second: float, error: Exception | None = None, is_granted: bool = True, partition: int = 0
    ) -> None: ...


@pytest.fixture
async def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    refusals = Refusals()

    def asked(second: float, error: Exception | None = None, is_granted: bool = True, partition: int = 0) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "time", lambda: 1_000.0 + second)
            with refusals.asking(partition, lambda: is_granted):
                if error is not None:
                    raise error

    return asked


def raises(error: Exception | None) -> AbstractContextManager[object]:
    return nullcontext() if error is None else pytest.raises(type(error))


@pytest.mark.parametrize("error", [REFUSED, Refused("405: not here")])
async def test_it_is_believed_after_half_a_minute(ask: Ask, error: PulsarError) -> None:
    for second in (0, 10, 20):
        with pytest.raises(Unavailable, match="a right is missing, or is not known for a moment"):
            ask(second, error)
    with pytest.raises(type(error)):
        ask(30, error)


async def test_what_is_believed_stays_so_until_the_right_is_proved(ask: Ask) -> None:
    """Else each partition that is opened would wait for half a minute again."""
    for second in (0, 10, 20):
        with pytest.raises(Unavailable):
            ask(second, REFUSED)
    for second in (30, 330):
        with pytest.raises(NotPermitted):
            ask(second, REFUSED)
    with pytest.raises(TimeoutError):
        ask(331, TimeoutError())
    with pytest.raises(NotPermitted):
        ask(332, REFUSED)
    ask(333)
    with pytest.raises(Unavailable):
        ask(334, REFUSED)


async def test_what_was_believed_long_ago_is_not_believed_at_once(ask: Ask) -> None:
    """The right may have come since, though no answer has proved it. A broker that refuses for a moment is no proof
    either.
    """
    for second in (0, 10, 20):
        with pytest.raises(Unavailable):
            ask(second, REFUSED)
    with pytest.raises(NotPermitted):
        ask(30, REFUSED)
    ask(100, is_granted=False)
    for second in (400, 410, 420):
        with pytest.raises(Unavailable):
            ask(second, REFUSED)
    with pytest.raises(NotPermitted):
        ask(430, REFUSED)


async def test_it_is_not_believed_where_nobody_has_asked_meanwhile(ask: Ask) -> None:
    for second in (0, 60, 120):
        with pytest.raises(Unavailable):
            ask(second, REFUSED)


async def test_it_is_believed_of_a_client_that_pauses(ask: Ask) -> None:
    """Some ask for ten seconds, and come back after a minute."""
    for begun in (0, 60, 120):
        for second in (0, 5, 9):
            with pytest.raises(Unavailable):
                ask(begun + second, REFUSED)
    with pytest.raises(Unavailable):
        ask(180, REFUSED)
    with pytest.raises(NotPermitted):
        ask(185, REFUSED)


@pytest.mark.parametrize("error", [None, Unavailable("no broker"), TimeoutError()])
async def test_another_outcome_ends_the_count(ask: Ask, error: Exception | None) -> None:
    for second in (0, 10):
        with pytest.raises(Unavailable):
            ask(second, REFUSED)
    with raises(error):
        ask(20, error)
    with pytest.raises(Unavailable, match="a right is missing"):
        ask(30, REFUSED)


@pytest.mark.parametrize("error", [Unavailable("it can't be loaded"), TimeoutError()])
async def test_a_partition_that_does_not_answer_does_not_end_the_count_of_another(ask: Ask, error: Exception) -> None:
    for second in (0, 10, 20):
        with pytest.raises(Unavailable, match="a right is missing"):
            ask(second, REFUSED)
        with pytest.raises(type(error)):
            ask(second + 5, error, partition=1)
    with pytest.raises(NotPermitted):
        ask(30, REFUSED)


async def test_what_is_believed_of_one_partition_is_believed_of_all(ask: Ask) -> None:
    for second in (0, 10, 20):
        with pytest.raises(Unavailable):
            ask(second, REFUSED)
    with pytest.raises(Unavailable):
        ask(25, REFUSED, partition=1)
    with pytest.raises(NotPermitted):
        ask(30, REFUSED)
    with pytest.raises(NotPermitted):
        ask(31, REFUSED, partition=2)


async def test_an_answer_of_one_partition_proves_the_right_to_all(ask: Ask) -> None:
    for second in (0, 10, 20):
        with pytest.raises(Unavailable):
            ask(second, REFUSED)
    ask(25, partition=1)
    with pytest.raises(Unavailable):
        ask(30, REFUSED)


@pytest.mark.parametrize("error", [TopicMissing("t"), None])
async def test_what_says_nothing_about_the_right_does_not_end_it(ask: Ask, error: Exception | None) -> None:
    for second in (0, 10, 20):
        with pytest.raises(Unavailable):
            ask(second, REFUSED)
    with raises(error):
        ask(25, error, is_granted=False)
    with pytest.raises(NotPermitted):
        ask(30, REFUSED)
