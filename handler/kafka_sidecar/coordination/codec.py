"""Records of an internal topic as its log stores them: messages with a key. Compaction keeps the last of each key."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Protocol, TypeVar

from kafka_sidecar.coordination.home import Translation

R = TypeVar("R")

# A key and its value; without one the key is deleted.
Pair = tuple[bytes, bytes | None]


class LegacyReader(Protocol):
    """Messages that another program has left in the topic, in a form of its own, in the order of the log."""

    def records(self, value: bytes) -> list[Pair] | None:
        """The records that a message holds; None where it is one of ours."""
        ...


class Codec(Protocol[R]):
    def write(self, record: R) -> Pair: ...

    def read(self, key: bytes, value: bytes | None) -> R | None:
        """None for a kind of record that is not known. May raise ProtocolError."""
        ...

    def translated(self, record: R, names: Translation) -> R:
        """The record with other names for its topics."""
        ...

    def topics_of(self, record: R) -> Iterable[tuple[str, uuid.UUID | None]]:
        """Topics that the record names, with their ids if it says which ones these were."""
        ...

    def legacy_reader(self) -> LegacyReader:
        """A new one for each reading of the log."""
        ...
