"""The options of `kafka-sidecar groups`."""

from __future__ import annotations

import pytest

from kafka_sidecar.commands.groups import command
from kafka_sidecar.commands.groups.transfer import TransferOptions
from kafka_sidecar.commands.groups.translate import TranslateOptions
from tests.support.commands import Recorded, parsed


@pytest.mark.parametrize("direction", ["import", "export"])
def test_a_transfer_has_a_direction(direction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transfer = Recorded(code=1)
    monkeypatch.setattr("kafka_sidecar.commands.groups.transfer.transfer", transfer)
    options = parsed(
        command, direction, "--group", "g", "--topic", "a", "--topic", "b", "--bootstrap-server", "pod:1", "--dry-run"
    )
    assert command.run(options) == 1
    assert transfer.arguments[1] == TransferOptions(
        direction=direction, group="g", topics=("a", "b"), bootstrap="pod:1", dry_run=True
    )


def test_a_translation_is_of_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    translate = Recorded()
    monkeypatch.setattr("kafka_sidecar.commands.groups.translate.translate", translate)
    assert command.run(parsed(command, "translate", "--group", "g", "--bootstrap-server", "pod:1")) == 0
    assert translate.arguments[1] == TranslateOptions(group="g", bootstrap="pod:1", dry_run=False)
