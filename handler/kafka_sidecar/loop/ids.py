"""Names that nobody else has."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from typing import Final

# It says whose entries these are: the fold trusts the sequences of writers with this prefix, and of no other.
WRITER_PREFIX: Final = "kafka-sidecar-"
OUR_WRITER: Final = WRITER_PREFIX.encode()
# Makes the part of a name that differs each time. A simulation gives one of its own, and so decides the names.
NewId = Callable[[], str]
NewProducerId = Callable[[], int]


def new_id() -> str:
    return uuid.uuid4().hex[:16]


def new_producer_id() -> int:
    """Of 63 random bits: no two sidecars need to agree on anything."""
    return secrets.randbits(63)
