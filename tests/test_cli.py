"""The table of commands, and how the program ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kafka_sidecar.cli import COMMANDS, ENDED_BY_SIGPIPE, main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert COMMANDS[name].TEXT in " ".join(capsys.readouterr().out.split())


def test_a_failure_is_one_sentence_and_the_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify"]) == 2
    assert (
        capsys.readouterr().err
        == "kafka-sidecar: name a topic, or all of a namespace with --namespace tenant/namespace\n"
    )


def test_a_reader_that_has_seen_enough_ends_the_command_without_a_word() -> None:
    """As in `kafka-sidecar verify | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "kafka_sidecar", "check-config"]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)  # noqa: S603
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (ENDED_BY_SIGPIPE, b"")
