"""`kafka-sidecar serve`: this process, or a supervisor of several."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sidecar.commands import serve
from kafka_sidecar.errors import ConfigError
from tests.support.commands import Recorded, parsed


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_it_serves_until_it_is_stopped(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = Recorded(code=3)
    monkeypatch.setattr("kafka_sidecar.process.run.run", serving)
    assert serve.run(parsed(serve, "--once", "--loop", loop)) == 3
    assert type(serving.loop).__module__.partition(".")[0] == loop
    assert serving.named == {"once": True, "ends_with_input": False}


def test_workers_get_the_options_of_their_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervising, file = Recorded(), tmp_path / "sidecar.toml"
    file.write_text("")
    monkeypatch.setattr("kafka_sidecar.process.workers.supervise", supervising)
    assert serve.run(parsed(serve, "--workers", "2", "--once", "--loop", "asyncio", "--config", str(file))) == 0
    assert supervising.arguments[1:] == (2, ["--loop", "asyncio", "--once", "--config", str(file)])


def test_no_workers_are_too_few() -> None:
    with pytest.raises(ConfigError, match="--workers 0"):
        serve.run(parsed(serve, "--workers", "0"))
