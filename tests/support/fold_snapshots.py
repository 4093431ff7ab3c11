"""What sidecars have kept of a partition's fold."""

from __future__ import annotations

from kafka_sidecar.partition import snapshot_pb2
from kafka_sidecar.partition.fold.snapshot import DecodedSnapshot, decode
from kafka_sidecar.partition.snapshots import packed
from tests.support.memory_states import MemoryStates

KEY = b"fold:t-partition-0"


def keys(states: MemoryStates) -> list[bytes]:
    return [key for key in states.values if key.startswith(KEY)]


def known_from_here(value: bytes) -> bytes:
    """The same, of a sidecar that knows nothing of the transactions before."""
    fold = snapshot_pb2.Fold.FromString(packed.unpack(value))
    fold.transactions.known_from_ledger, fold.transactions.known_from_entry = fold.last_ledger, fold.last_entry
    return packed.pack(fold.SerializeToString())


def folds(states: MemoryStates) -> list[DecodedSnapshot]:
    return [decode(packed.unpack(states.values[key])) for key in keys(states)]
