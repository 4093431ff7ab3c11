"""Who of several members has which of the parts of something: rendezvous hashing with bounded loads.

Of all pairs of a part and a member the lightest is taken first. No member has more than its share, rounded up;
whichever works it out finds the same; and a member that comes or goes moves little else than its own part (measured: up
to half as much again).
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter
from collections.abc import Collection
from typing import Final

# Of one digest: 64 bytes.
_WEIGHTS: Final = 16


def shared_out(subject: str, parts: int, members: Collection[str]) -> list[str]:
    """The member that has each part of `subject`."""
    if len(members) == 1:
        return [*members] * parts
    share = math.ceil(parts / len(members))
    pairs = sorted(
        (weight, part, member) for member in members for part, weight in enumerate(_weights(subject, parts, member))
    )
    found = [""] * parts
    loads: Counter[str] = Counter()
    for _, part, member in pairs:
        if not found[part] and loads[member] < share:
            found[part] = member
            loads[member] += 1
    return found


def _weights(subject: str, parts: int, member: str) -> tuple[int, ...]:
    digests = (
        hashlib.blake2b(f"{subject} {block} {member}".encode()).digest() for block in range(math.ceil(parts / _WEIGHTS))
    )
    return struct.unpack_from(f">{parts}I", b"".join(digests))
