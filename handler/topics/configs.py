"""Kafka's topic configs, and where Pulsar keeps them. Pure.

A config that is not here is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# How the records of Kafka's producers are stored (see partition/log/formats). It is a property of the Pulsar topic: every sidecar
# sees it.
ENTRY_FORMAT: Final = "entry.format"
ENTRY_FORMATS: Final = ("kafka", "pulsar")
# The property by which Kafka-on-Pulsar has it; its third format is one of Kafka batches too.
_KOP_ENTRY_FORMAT: Final = "kafkaEntryFormat"
_KOP_FORMATS: Final = {"kafka": "kafka", "mixed_kafka": "kafka", "pulsar": "pulsar"}


class InvalidConfig(ValueError):
    """The text says what to change."""


def properties_of(configs: Mapping[str, str | None]) -> dict[str, str]:
    """The properties of a Pulsar topic that is made with these configs."""
    unknown = sorted(set(configs) - {ENTRY_FORMAT})
    if unknown:
        raise InvalidConfig(f"these topic configs are not supported yet: {', '.join(unknown)}")
    wanted = configs.get(ENTRY_FORMAT)
    if wanted is None:
        return {}
    if wanted not in ENTRY_FORMATS:
        raise InvalidConfig(f"{ENTRY_FORMAT} is {wanted!r}: use {' or '.join(ENTRY_FORMATS)}")
    return {ENTRY_FORMAT: wanted}


def entry_format(properties: Mapping[str, str]) -> str | None:
    """The format of a topic's entries; None where its properties say none that is known."""
    own = properties.get(ENTRY_FORMAT)
    return own if own in ENTRY_FORMATS else _KOP_FORMATS.get(properties.get(_KOP_ENTRY_FORMAT, ""))
