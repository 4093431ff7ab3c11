"""Every case, in the order of its file."""

from __future__ import annotations

from tests.contract import appends, ledgers, lookups, markers, readers, topics
from tests.contract.case import CASES

__all__ = ["CASES", "appends", "ledgers", "lookups", "markers", "readers", "topics"]
