"""The pipelines' commands: settings from flags and a file, and what is said of wrong ones."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.pipelines import command
from kafka_sidecar.pipelines.mirror.command import options_of
from kafka_sidecar.pipelines.options import Settings, table, write_result
from tests.support.commands import parsed

FILE = """
name = "dc"
topic = ["orders", "pay.*"]
continuous = true
round_seconds = 5
[source]
bootstrap = "old:9093"
security_protocol = "SSL"
[target]
bootstrap = "sidecar:9092"
"""


def settings(*arguments: str, pipeline: str = "mirror") -> Settings:
    return Settings(parsed(command, pipeline, *arguments))


def test_flags_count_more_than_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mirror.toml"
    file.write_text(FILE)
    options = options_of(
        settings("--config", str(file), "--name", "other", "--target", "here:1", "--exclude", "x", "--prefix", "p.")
    )
    assert (options.name.name, options.topics, options.exclude, options.prefix) == (
        "other",
        ("orders", "pay.*"),
        ("x",),
        "p.",
    )
    assert (options.source.bootstrap, options.source.security_protocol, options.target.bootstrap) == (
        "old:9093",
        "SSL",
        "here:1",
    )
    assert options.continuous
    assert options.exactly_once
    assert options.round_seconds == 5.0
    assert not options_of(settings("--config", str(file), "--delivery", "at-least-once")).exactly_once


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nam = 1", "no setting nam"),
        ("[name", "can't be read"),
        ("name = 1", "write a string"),
        ('name = "a"\ntopic = "orders"', "write a list"),
        ('name = "a"\ntopic = ["t"]\nsource = "x"', r"write a table, \[source\]"),
        (
            'name = "a"\ntopic = ["t"]\ncontinuous = 1\n[source]\nbootstrap = "a:1"\n[target]\nbootstrap = "b:1"',
            "write true or false",
        ),
        (
            'name = "a"\ntopic = ["t"]\nround_seconds = 0\n[source]\nbootstrap = "a:1"\n[target]\nbootstrap = "b:1"',
            "a number above 0",
        ),
        ('name = "a"\ntopic = ["t"]\ndelivery = "once"', "one of exactly-once"),
    ],
)
def test_what_is_wrong_in_the_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mirror.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        options_of(settings("--config", str(file)))


def test_one_file_serves_several_pipelines(tmp_path: Path) -> None:
    file = tmp_path / "move.toml"
    file.write_text(FILE)
    found = settings("--config", str(file), "--group", "g", pipeline="migrate-groups")
    assert (found.text("name"), found.texts("group"), found.cluster("target").bootstrap) == (
        "dc",
        ("g",),
        "sidecar:9092",
    )


def test_what_is_missing_is_said() -> None:
    for arguments, said in (
        ([], "--name"),
        (["--name", "a"], "--topic"),
        (["--name", "a", "--topic", "t"], "--source"),
    ):
        with pytest.raises(ConfigError, match=said):
            options_of(settings(*arguments))


def test_an_interrupt_is_told_and_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        TEXT = "it is stopped"

        def add(self, command: argparse.ArgumentParser) -> None:
            command.add_argument("--config")

        def run(self, _: Settings) -> int:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "PIPELINES", {"stopped": Interrupted()})
    monkeypatch.setattr("kafka_sidecar.telemetry.logs.start", lambda *_: None)
    assert command.run(parsed(command, "stopped")) == command.INTERRUPTED
    assert "goes on from what is done" in capsys.readouterr().out


def test_a_result_is_written_for_programs(tmp_path: Path) -> None:
    write_result(str(tmp_path / "r.json"), {"a": 1})
    assert json.loads((tmp_path / "r.json").read_text()) == {"a": 1}
    write_result("", {"a": 1})
    with pytest.raises(ConfigError, match="can't be written"):
        write_result(str(tmp_path / "absent" / "r.json"), {})


def test_tables_have_columns() -> None:
    assert table([["NAME", "N"], ["a", 1], ["long", None]], frozenset("N")) == ["NAME  N", "a     1", "long  -"]
