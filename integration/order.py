"""Which test files go to one worker, and in which order files are begun."""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadFileScheduling

# Files that use one server, which lives as long as their worker.
TOGETHER: Final = {
    "test_fleet": "fleet_broker",
    "test_coordination": "fleet_broker",
    "test_transaction_faults": "fleet_broker",
    "test_brokers": "two_brokers",
    "test_transaction_checker": "two_brokers",
}
# The longest first, so that two workers end at about the same time. Files with Spark use the processor, those with
# several sidecars wait: one of each at a time. All others follow in the order of their names.
LONGEST_FIRST: Final = (
    "test_mirror_pipeline",
    "fleet_broker",
    "test_archive_pipeline",
    "two_brokers",
    "test_fleet_faults",
    "test_offsets",
    "test_faults",
    "test_transactions",
    "test_reindex_pipeline",
    "test_spark_faults",
    "test_groups",
    "test_matrix",
    "test_consumer_protocol",
)


def scope(file: str) -> str:
    """What goes to one worker with a file, named without its ending."""
    return TOGETHER.get(file, file)


def place(file: str) -> int:
    return LONGEST_FIRST.index(scope(file)) if scope(file) in LONGEST_FIRST else len(LONGEST_FIRST)


class FilesThatShareServers(LoadFileScheduling):
    """As `--dist loadfile`, but for the files in `TOGETHER`."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return scope(file.rpartition("/")[2].removesuffix(".py"))
