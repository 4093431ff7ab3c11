"""Every case of one topic, in the order of its file. Those of two clusters are in `copies`."""

from __future__ import annotations

from tests.contract import appends, ledgers, lookups, markers, readers, topics
from tests.contract.case import CASES

__all__ = ["CASES", "appends", "ledgers", "lookups", "markers", "readers", "topics"]
