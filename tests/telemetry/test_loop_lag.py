"""The worst lag of the last minute, and a word when it is dangerous."""

from __future__ import annotations

import asyncio
import time

import pytest

from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.loop_lag import LATE_SECONDS, SAMPLES, LoopLag


def worst() -> float:
    (metric,) = metrics.LOOP_LAG.collect()
    return float(metric.samples[0].value)


def test_the_worst_is_told_until_it_is_a_minute_old(caplog: pytest.LogCaptureFixture) -> None:
    lag = LoopLag()
    lag.observe(LATE_SECONDS + 1)
    assert "the event loop was 3.0 s late" in caplog.text
    for _ in range(SAMPLES - 1):
        lag.observe(0.01)
    assert worst() == LATE_SECONDS + 1
    lag.observe(0.01)
    assert worst() == 0.01


def test_a_loop_that_something_holds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.telemetry.loop_lag.SAMPLE_SECONDS", 0.01)

    async def held() -> None:
        watching = asyncio.create_task(LoopLag().watch())
        await asyncio.sleep(0)  # it begins to wait
        time.sleep(0.1)  # noqa: ASYNC251 - something holds the loop
        while worst() < 0.05:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(0)
        watching.cancel()

    asyncio.run(held())  # the loop of other tests knows no time that passes at work
