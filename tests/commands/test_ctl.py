"""`kafka-sidecar ctl` on a screen."""

from __future__ import annotations

import argparse

import pytest
from google.protobuf.message import Message

from kafka_sidecar.cli import _parser
from kafka_sidecar.commands.ctl import COMMANDS, _address, _row, run, table
from kafka_sidecar.config import Config, ControlConfig
from kafka_sidecar.control.v1 import admin_pb2 as pb
from kafka_sidecar.errors import ConfigError


def test_rows_are_a_table_with_numbers_to_the_right() -> None:
    found = pb.Partition(
        topic="orders", partition=3, state="open", end_offset=1_234, last=pb.MessageId(ledger=12, entry=5)
    )
    lines = table([_row(found), _row(pb.Partition(topic="t", state="opening"))])
    assert lines == [
        "TOPIC   PARTITION  STATE    LEADER  LOG START  END OFFSET  LAST STABLE OFFSET  LAST  PRODUCERS  OPEN "
        "TRANSACTIONS  TRANSACTIONS LEFT OPEN",
        "orders          3  open          0          0        1234                   0  12:5          0                "
        "  0                       0",
        "t               0  opening       0          0           0                   0  -             0                "
        "  0                       0",
    ]
    assert table([]) == []


def test_the_control_port_is_that_of_the_configuration_unless_another_is_given() -> None:
    config = Config(control=ControlConfig(listen="127.0.0.1:7000"))
    assert _address(config, argparse.Namespace(address=None)) == "127.0.0.1:7000"
    assert _address(config, argparse.Namespace(address="pod:9")) == "pod:9"
    with pytest.raises(ConfigError, match="write --address HOST:PORT"):
        _address(Config(), argparse.Namespace(address=None))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["ctl", name, "--help"])
    assert COMMANDS[name].help in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("given", ["12", "a:b", "1:2:3:4"])
def test_a_message_id_that_is_none_is_refused(given: str) -> None:
    options = _parser().parse_args(["ctl", "offset", "t", "0", given])
    with pytest.raises(ConfigError, match="write LEDGER:ENTRY"):
        COMMANDS["offset"].ask(None, options)  # type: ignore[arg-type]


def test_an_empty_answer_says_what_it_means(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Idle:
        def __init__(self, _: str) -> None: ...
        def __enter__(self) -> Idle:
            return self

        def __exit__(self, *_: object) -> None: ...
        def groups(self) -> list[Message]:
            return []

    monkeypatch.setattr("kafka_sidecar.control.client.ControlClient", Idle)
    asked = argparse.Namespace(what="groups", address="127.0.0.1:1", json=False)
    assert run(asked) == 0
    assert capsys.readouterr().out.startswith("It coordinates none at the moment.")
