"""What was worked out of logs, kept in Pulsar: a compacted internal topic that any sidecar reads and writes.

    partition ── what it knows, up to an entry ──▶ __kept_states ──▶ the next sidecar reads the log on from that entry

A value is a function of its log, so nobody is elected to write it and it matters little which of two is found. Who
finds none, or one that makes no sense, reads the log. Nobody waits for a value to be stored, and a failure here is no
failure of who asked.

In memory there is only where each value stands. A value that nobody has written again for a month is deleted by the
sidecar that reads it: its topic may be gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kafka_sidecar.internal_topics.internal_topic import count_of, partitions_of
from kafka_sidecar.internal_topics.refusals import Refusals
from kafka_sidecar.internal_topics.snapshot_places import Kept
from kafka_sidecar.internal_topics.snapshot_shard import MadeAnew, SnapshotShard
from kafka_sidecar.loop.byte_rate import ByteRate
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.loop.waiting import while_it_goes_on
from kafka_sidecar.pulsar.errors import PulsarError, Refused, TopicMissing, Unavailable
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.crc import crc32c

log = RateLimitedLog(logging.getLogger(__name__))
T = TypeVar("T")

# A reader of one value reads only the partition that holds its key.
PARTITIONS: Final = 16
ASK_SECONDS: Final = 10.0
# Larger values are refused. A value above 1 MiB is split into parts that fit into an entry. No snapshot comes near 64
# MiB.
MAX_BYTES: Final = 64 * 1024 * 1024
# Least rate at which Pulsar is expected to store a large value: it sets the timeout.
LEAST_BYTES_A_SECOND: Final = 1024 * 1024
# One process limits its repeated writes of snapshots to this rate, with this burst (bytes).
BYTES_A_SECOND: Final = 1024 * 1024
BYTES_AT_ONCE: Final = 8 * 1024 * 1024
# After one partition of the topic was recreated, a sidecar checks the other partitions this often, this many times.
LOOK_AT_OTHERS_SECONDS: Final = 30.0
LOOKS_AT_OTHERS: Final = 20


class SnapshotTopic:
    def __init__(self, client: Client, admin: Admin, namespace: str, clock: Clock, new_id: NewId) -> None:
        self._clock = clock
        self._new_id = new_id
        self._client = client
        self._admin = admin
        self.topic = f"persistent://{namespace}/__kept_states"
        self._shards: list[SnapshotShard] = []
        self._refused_reads = Refusals()
        self._refused_writes = Refusals()
        self._times_begun_again = 0  # recreations of the topic with another partition count
        self._remaking = asyncio.Lock()
        self._looks_left: dict[SnapshotShard, int] = {}  # checks left, by partition that may have been recreated
        self._looking = SupervisedTask("snapshot_topic", self.topic, self._look)
        self.rate = ByteRate(BYTES_A_SECOND, BYTES_AT_ONCE)  # limits repeated writes of snapshots

    async def find(self, key: bytes) -> Kept | None:
        """What was stored last, as far as is known; None also where nobody knows now."""
        try:
            async with while_it_goes_on(ASK_SECONDS, self._progress):
                if not self._shards:
                    await self._begin(count_of(self._admin, self.topic))
                return await self._shard(key).find(key) if self._shards else None
        except TopicMissing:
            return None
        except (PulsarError, TimeoutError) as error:
            log.warning("%s can't be read, so logs are read instead: %s", self.topic, str(error) or "no answer")
            return None

    async def look_up(self, key: bytes) -> Kept | None:
        """What anybody stored last, before this call. May raise PulsarError."""
        return await self._asked(key, lambda shard: shard.look_up(key), None)

    async def names(self, prefix: bytes) -> list[bytes]:
        """The keys that begin with a prefix, which ends with a zero byte (see `_shard`). May raise PulsarError."""
        return await self._asked(prefix, lambda shard: shard.names(prefix), [])

    async def _asked(self, key: bytes, question: Callable[[SnapshotShard], Awaitable[T]], nothing: T) -> T:
        """`nothing` where nobody has ever kept a value."""
        try:
            read_before = self._progress()
            with self._refused_reads.asking(self._number(key), is_granted=lambda: self._progress() > read_before):
                async with while_it_goes_on(ASK_SECONDS, self._progress):
                    if not self._shards:
                        await self._begin(count_of(self._admin, self.topic))
                    shards, shard = self._shards, self._shard(key)
                    times = shard.times_remade
                    try:
                        return await question(shard)
                    except MadeAnew:
                        await self._remake(shards, shard, times)
                        raise
        except TopicMissing:
            return nothing
        except TimeoutError as error:
            raise Unavailable(f"{self.topic} could not be read within {ASK_SECONDS:.0f} s") from error

    def times_remade(self, key: bytes) -> int:
        """It grows when the partition of a key is made again: what was stored there before is gone."""
        return self._times_begun_again + (self._shard(key).times_remade if self._shards else 0)

    def new_id(self) -> str:
        """For a key that nobody else has."""
        return self._new_id()

    async def keep(self, key: bytes, value: bytes) -> bool:
        """Store a value, if Pulsar takes it now; an empty one is none."""
        try:
            await self.store(key, value)
        except PulsarError as error:
            log.warning("%s can't be written, so logs may have to be read again: %s", self.topic, error)
            return False
        return True

    async def store(self, key: bytes, value: bytes) -> None:
        """The same. Raises PulsarError where it is not stored, or nobody can tell."""
        if len(value) > MAX_BYTES:
            raise Refused(f"a value of {len(value)} bytes is too large for {self.topic}")
        try:
            with self._refused_writes.asking(self._number(key)):
                async with asyncio.timeout(ASK_SECONDS + len(value) / LEAST_BYTES_A_SECOND):
                    await self._store(key, value)
        except TimeoutError as error:
            raise Unavailable(f"{self.topic} could not be written in time") from error

    async def _store(self, key: bytes, value: bytes) -> None:
        if not self._shards:
            await self._begin(partitions_of(self._admin, self.topic, PARTITIONS))
        shards, shard = self._shards, self._shard(key)
        times = shard.times_remade
        try:
            await _store_in(shard, key, value)
        except (TopicMissing, MadeAnew):
            await self._remake(shards, shard, times)
            if not self._shards:
                raise
            await _store_in(self._shard(key), key, value)

    def _look_at_others(self, noticed: SnapshotShard) -> None:
        """An operator who deletes the topic deletes all its partitions, one after the other. This sidecar would notice
        some of them hours later, when it stores something.
        """
        self._looks_left.update((one, LOOKS_AT_OTHERS) for one in self._shards if one is not noticed)
        self._looking.start()

    async def _look(self) -> None:
        while self._looks_left:
            for shard in list(self._looks_left):
                if shard in self._shards:
                    with contextlib.suppress(PulsarError):
                        await shard.look_when_created()
                left = self._looks_left.pop(shard, 0) - 1
                if left > 0 and shard in self._shards:
                    self._looks_left[shard] = left
            if self._looks_left:
                await asyncio.sleep(LOOK_AT_OTHERS_SECONDS)

    async def _remake(self, known: list[SnapshotShard], gone: SnapshotShard, times: int) -> None:
        """Somebody has deleted the topic. Each partition of it is found missing when something is stored there."""

        def has_noticed() -> bool:
            """Another that asked at the same time has made it again, or has found that somebody did."""
            return self._shards is not known or gone not in known or gone.times_remade != times

        async with self._remaking:
            if has_noticed():
                return
            count = await partitions_of(self._admin, self.topic, PARTITIONS)
            await self._admin.topics.create_missing_partitions(self.topic)
            if has_noticed():
                return
            if count == len(known):
                log.warning("somebody has deleted a partition of %s; it is created again", self.topic)
                number = known.index(gone)
                known[number] = self._new_shard(number, count)
                known[number].times_remade = gone.times_remade + 1
                self._look_at_others(known[number])
                gone.close(MadeAnew(f"{self.topic} was made again"))
            else:
                log.warning(
                    "somebody has created %s again, with %d partitions instead of %d", self.topic, count, len(known)
                )
                self._times_begun_again += 1 + max(shard.times_remade for shard in known)
                self._shards = [self._new_shard(number, count) for number in range(count)]
                for shard in known:
                    shard.close(MadeAnew(f"{self.topic} was made again"))

    def close(self) -> None:
        self._looking.stop()
        shards, self._shards = self._shards, []
        for shard in shards:
            shard.close(Unavailable("the sidecar stops"))

    async def _begin(self, counting: Awaitable[int]) -> None:
        count = await counting
        if not self._shards:  # another call may have created the shards during the await
            self._shards = [self._new_shard(number, count) for number in range(count)]

    def _new_shard(self, number: int, count: int) -> SnapshotShard:
        return SnapshotShard(
            self._client, self._admin, self.topic, number, count, self._clock, self._new_id, self._look_at_others
        )

    def _progress(self) -> int:
        return sum([shard.progress for shard in self._shards])

    def _shard(self, key: bytes) -> SnapshotShard:
        return self._shards[self._number(key)]

    def _number(self, key: bytes) -> int:
        """Keys that are the same up to a zero byte are in the same shard."""
        return crc32c(key.partition(b"\0")[0]) % (len(self._shards) or PARTITIONS)


async def _store_in(shard: SnapshotShard, key: bytes, value: bytes) -> None:
    await (shard.keep(key, value) if value else shard.forget(key))
