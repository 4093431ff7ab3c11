"""The options of `kafka-sidecar inspect`."""

from __future__ import annotations

import pytest

from kafka_sidecar.commands.inspect import command
from kafka_sidecar.commands.inspect.inspect import InspectOptions
from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.pulsar.entry import Position
from tests.support.commands import Recorded, parsed


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("entry", "t", "--offset", "7"), InspectOptions(what="entry", name="t", offset=7, entries=0)),
        (
            ("entry", "t", "--partition", "2", "--position", "12:3"),
            InspectOptions(what="entry", name="t", partition=2, position=Position(12, 3), entries=0),
        ),
        (("partition", "t", "--entries", "5"), InspectOptions(what="partition", name="t", entries=5)),
        (("group", "g"), InspectOptions(what="group", name="g", entries=0)),
    ],
)
def test_it_shows_what_is_named(
    arguments: tuple[str, ...], wanted: InspectOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspect = Recorded()
    monkeypatch.setattr("kafka_sidecar.commands.inspect.inspect.inspect", inspect)
    assert command.run(parsed(command, *arguments)) == 0
    assert inspect.arguments[1] == wanted


@pytest.mark.parametrize("given", ["12", "12:", "a:1", "1:2:3"])
def test_a_position_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(CommandFailed, match=f"--position {given}: write LEDGER:ENTRY"):
        command.run(parsed(command, "entry", "t", "--position", given))
