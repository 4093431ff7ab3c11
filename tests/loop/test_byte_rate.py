"""Bytes a second."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.loop.byte_rate import ByteRate


async def test_those_who_take_from_a_rate_wait_in_turn_and_may_use_what_was_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(round(seconds, 3))

    monkeypatch.setattr("kafka_sidecar.loop.byte_rate.pause", note)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 1_000.0)
    rate = ByteRate(rate=100, at_once=400)
    for _ in range(6):
        await rate.take(100)
    assert pauses == [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]
