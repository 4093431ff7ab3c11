"""The ordinary Produce request: every batch of it is the next of its producer in an open partition.

frame ── read_produce_frame ──▶ every batch: ResolvedPartitions, read_ordinary, Partition.is_next ──▶ append_next … ──▶
                │                                          │                                           answer
                └────────────── anything else ─────────────┴──▶ a00_produce, which knows every refusal

All batches are looked at before the first is sent. So a request goes this way as a whole, or nothing of it has been
done when the other begins with it. Both ways make the same appends, and what happens to an append after its SEND knows
no two ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafka_sidecar.apis.api import Client, Response, Result, Services
from kafka_sidecar.apis.state.promise import Promise
from kafka_sidecar.partition.log.log_config import MAX_AHEAD_MS
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.partition.write.log_validator import BatchRefused
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.produce_frame import ProduceFrame, produce_answer, read_produce_frame
from kafka_sidecar.wire.records import LZ4, ZSTD, read_ordinary

ZSTD_SINCE: Final = 7
ACKS: Final = frozenset((-1, 0, 1))
_SECONDS: Final = metrics.REQUEST_SECONDS.of("Produce")


class OrdinaryProduce(Promise[Response]):
    """The request as its connection keeps it (`api.BegunRequest`) while its batches are on their way, and the promise
    of its response.
    """

    __slots__ = ("_appends", "_client", "_clock", "_left", "_partitions", "_requested", "_results")

    api: Final = "Produce"
    ends_with_client: Final = False

    def __init__(self, requested: ProduceFrame, client: Client, clock: Callable[[], float]) -> None:
        super().__init__()
        self._requested = requested
        self._client = client
        self._clock = clock
        self._left = len(requested.batches)
        self._partitions: list[Partition] = []
        self._appends: list[Append] = []
        self._results = [(0, 0, 0)] * self._left  # error, base offset, log start

    @property
    def answer(self) -> Result:
        return self

    def encode(self, answer: Any) -> tuple[bytes]:
        """It was encoded when it was made."""
        return (answer,)

    def took(self, seconds: float) -> None:
        _SECONDS.observe(seconds)

    def send(self, partitions: list[Partition], appends: list[Append], now: float) -> None:
        self._partitions = partitions
        self._appends = appends
        for partition, append in zip(partitions, appends, strict=True):
            metrics.PRODUCED_BYTES.add(len(append.data))
            partition.append_next(append, now)

    def on_refused(self, batch_index: int, refused: BatchRefused) -> None:
        """Nothing of an ordinary batch is refused by what its topic asks."""

    def on_log_append_time(self, batch_index: int, timestamp: int) -> None:
        """An ordinary batch has its producer's time."""

    def on_appended(self, batch_index: int, error: ErrorCode, base_offset: int) -> None:
        failed = error is not ErrorCode.NONE
        self._results[batch_index] = (error, base_offset, -1 if failed else self._partitions[batch_index].log_start)
        if failed:
            self._failed(batch_index, error)
        self._left -= 1
        if not self._left:
            self.resolve(produce_answer(self._requested, self._results) if self._requested.acks else None)

    def _failed(self, batch_index: int, error: ErrorCode) -> None:
        append = self._appends[batch_index]
        subject = self._requested.batches[batch_index][:2]
        noted = self._client.refused.note(
            subject, append.producer_id, append.epoch, append.first_sequence, error, self._clock()
        )
        if not noted or not self._requested.acks:
            self._client.abort()  # the only way to tell a client that wants no answer


def begin_ordinary(services: Services, client: Client, frame: memoryview) -> OrdinaryProduce | None:
    """Send the batches of a request, if each of them is an ordinary one; None if nothing was done."""
    requested = read_produce_frame(frame)
    if requested is None or requested.acks not in ACKS or not requested.batches:
        return None
    known = services.produce_partitions
    known.drop_stale(services.generation)
    now = services.clock()
    if client.refused.holds_any(now):
        return None
    deadline = now + max(requested.timeout_ms / 1000, 0.001)
    latest = services.wall_clock() + MAX_AHEAD_MS
    highest_codec = ZSTD if requested.version >= ZSTD_SINCE else LZ4
    request = OrdinaryProduce(requested, client, services.clock)
    partitions: list[Partition] = []
    appends: list[Append] = []
    for key, index, begin, end in requested.batches:
        partition = known.get(key, index)
        batch = read_ordinary(frame, begin, end, latest, highest_codec)
        if partition is None or batch is None:
            return None
        offset_count, max_timestamp, producer_id, epoch, first_sequence = batch
        if not partition.is_next(end - begin, producer_id, epoch, first_sequence, now):
            return None
        data = bytearray(frame[begin:end])  # it gets its offset in place, when it is read
        appends.append(
            Append(
                data, offset_count, max_timestamp, producer_id, epoch, first_sequence, deadline, request, len(appends)
            )
        )
        partitions.append(partition)
    if len(partitions) > 1 and len(set(partitions)) < len(partitions):
        return None  # the second batch of a partition has to follow the first
    request.send(partitions, appends, now)
    return request
