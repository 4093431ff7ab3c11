"""The commands end as other programs of a shell do."""

from __future__ import annotations

import os
import subprocess
import sys

from kafka_sidecar.cli import ENDED_BY_SIGPIPE


def test_a_reader_that_has_seen_enough_ends_the_command_without_a_word() -> None:
    """As in `kafka-sidecar verify | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "kafka_sidecar", "check-config"]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)  # noqa: S603
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (ENDED_BY_SIGPIPE, b"")
