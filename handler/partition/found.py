"""What a search in a partition finds."""

from __future__ import annotations

from typing import Final, NamedTuple


class Found(NamedTuple):
    offset: int
    timestamp: int


NOT_FOUND: Final = Found(-1, -1)
