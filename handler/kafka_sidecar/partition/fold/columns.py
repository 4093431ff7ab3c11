"""Columns of numbers, as they are kept."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise


def differences(column: Iterable[int]) -> list[int]:
    """Each number as the difference to the one before: small where they grow."""
    return [later - earlier for earlier, later in pairwise([0, *column])]
