"""A value that is larger than an entry may be, in parts. Pure.

    parts, each under its own key that has the value's random id ──▶ all are stored ──▶ a head under the value's key

Two sidecars that write at the same time have different ids, so no reader gets parts of both. The head tells how many
parts there are and what all of them are together: a reader that lacks one, or finds something else, has found nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

PART_BYTES: Final = 1024 * 1024
_MAGIC: Final = b"parts\x001 "


class Head(NamedTuple):
    id: bytes
    parts: int
    digest: bytes

    def encode(self) -> bytes:
        return b"%b%b %d %b" % (_MAGIC, self.id, self.parts, self.digest)

    @classmethod
    def decode(cls, value: bytes) -> Head | None:
        """None for a value that is whole, or of a version that is not known here."""
        if not value.startswith(_MAGIC):
            return None
        try:
            one, parts, digest = value[len(_MAGIC) :].split(b" ")
            return cls(one, int(parts), digest)
        except ValueError:
            return None

    def keys(self, key: bytes) -> list[bytes]:
        """Under which its parts are stored."""
        return [b"part:%b/%d:%b" % (self.id, number, key) for number in range(self.parts)]

    def joined(self, parts: Sequence[bytes]) -> bytes | None:
        """The value; None where these are not its parts."""
        value = b"".join(parts)
        return value if _digest(value) == self.digest else None


def split(value: bytes, new_id: str) -> tuple[Head, list[bytes]]:
    parts = [value[at : at + PART_BYTES] for at in range(0, len(value), PART_BYTES)]
    return Head(new_id.encode(), len(parts), _digest(value)), parts


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).hexdigest().encode()
