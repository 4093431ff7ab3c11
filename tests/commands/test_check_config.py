"""`kafka-sidecar check-config`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sidecar.commands import check_config
from kafka_sidecar.config import load
from tests.support.commands import parsed


def test_what_it_prints_can_be_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, printed = tmp_path / "sidecar.toml", tmp_path / "printed.toml"
    file.write_text('[kafka]\nlisten = "127.0.0.1:7"\n')
    assert check_config.run(parsed(check_config, "--config", str(file))) == 0
    printed.write_text(capsys.readouterr().out)
    assert load(printed, {}) == load(file, {})
