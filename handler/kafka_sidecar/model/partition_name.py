"""The names of partitions, in Pulsar's words. They are kept, sent and logged as text; only here it is put together and
taken apart.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"(.*)-partition-(\d{1,10})", re.DOTALL | re.ASCII)


def partition_name(topic: str, index: int) -> str:
    """Of a topic in full, or of its name in its namespace."""
    return f"{topic}-partition-{index}"


def split_partition_name(partition: str) -> tuple[str, int] | None:
    """The topic, and the number of the partition; None for what is no partition of a topic."""
    found = _NAME.fullmatch(partition)
    return None if found is None else (found[1], int(found[2]))


def topic_of(partition: str) -> str:
    """The topic of a partition that is one."""
    return partition.rpartition("-partition-")[0]
