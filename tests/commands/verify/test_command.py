"""The options of `kafka-sidecar verify`."""

from __future__ import annotations

import pytest

from kafka_sidecar.commands.verify import command
from kafka_sidecar.commands.verify.verify import VerifyOptions
from kafka_sidecar.errors import CommandFailed
from tests.support.commands import Recorded, parsed


def test_it_walks_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    verify = Recorded(code=1)
    monkeypatch.setattr("kafka_sidecar.commands.verify.verify.verify", verify)
    assert command.run(parsed(command, "a", "b", "--namespace", "team/sales", "--partition", "3", "--json")) == 1
    assert verify.arguments[1] == VerifyOptions(topics=("a", "b"), namespace="team/sales", partition=3, json=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [((), "name a topic"), (("--namespace", "public"), "--namespace public: write tenant/namespace")],
)
def test_it_wants_a_topic_or_a_namespace(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandFailed, match=sentence):
        command.run(parsed(command, *arguments))
