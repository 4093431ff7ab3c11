"""Lines that repeat are kept back, each kind on its own."""

from __future__ import annotations

import logging

import pytest

from kafka_sidecar.telemetry.limits import RateLimitedLog


def test_a_flood_of_one_kind_hides_no_other(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.INFO)
    now = 100.0
    monkeypatch.setattr("kafka_sidecar.telemetry.limits.time.monotonic", lambda: now)
    log = RateLimitedLog(logging.getLogger("flood"), per_second=0.1, burst=3)
    for number in range(1_000):
        log.info("group %d waits", number)
    log.warning("the disk is full")
    assert [record.getMessage() for record in caplog.records] == [
        "group 0 waits",
        "group 1 waits",
        "group 2 waits",
        "the disk is full",
    ]
    now += 10
    log.info("group %d waits", 7)
    assert caplog.records[-1].getMessage() == "group 7 waits (997 more like this were not logged)"


def test_an_exception_comes_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog(logging.getLogger("flood"))
    try:
        raise KeyError("odd")
    except KeyError:
        log.exception("it failed")
    assert "KeyError: 'odd'" in caplog.text
