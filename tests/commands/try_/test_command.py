"""The options of `kafka-sidecar try`."""

from __future__ import annotations

import pytest

from kafka_sidecar.commands.try_ import command
from tests.support.commands import Recorded, parsed


def test_it_tries_the_sidecar_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    try_out = Recorded()
    monkeypatch.setattr("kafka_sidecar.commands.try_.try_out.try_out", try_out)
    assert command.run(parsed(command, "--bootstrap-server", "pod:1", "--topic", "t", "--seconds", "3")) == 0
    assert try_out.arguments[:3] == ("pod:1", "t", 3.0)
