"""Names that nobody else has."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from typing import Final

# The name prefix of all Pulsar producers of sidecars. The fold trusts the sequence ids only of producers with this
# prefix.
WRITER_PREFIX: Final = "kafka-sidecar-"
OUR_WRITER: Final = WRITER_PREFIX.encode()
# Makes the unique part of a name. A simulation passes its own function, so that it decides the names.
NewId = Callable[[], str]
NewProducerId = Callable[[], int]


def new_id() -> str:
    return uuid.uuid4().hex[:16]


def new_producer_id() -> int:
    """Of 63 random bits: no two sidecars need to agree on anything."""
    return secrets.randbits(63)
