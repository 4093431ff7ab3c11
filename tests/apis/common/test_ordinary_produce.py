"""The ordinary way of a Produce request: it is taken, and it comes to the same answers and the same log as the
other.
"""

from __future__ import annotations

import asyncio
import gc
import struct
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_sidecar.apis.api import BegunRequest, Services
from kafka_sidecar.apis.common.ordinary_produce import OrdinaryProduce
from kafka_sidecar.apis.state.answer_share import AnswerShare
from kafka_sidecar.apis.state.fetch_session_cache import FetchSessionCache
from kafka_sidecar.apis.state.promise import settled
from kafka_sidecar.apis.state.refused_batches import RefusedBatches
from kafka_sidecar.config import KafkaConfig
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.partition.log.log_config import MAX_AHEAD_MS
from kafka_sidecar.partition.write.appender import STALE_FOLD_SECONDS
from kafka_sidecar.partition.write.sender import MAX_ENTRIES_IN_FLIGHT
from kafka_sidecar.server.dispatch import Dispatcher
from kafka_sidecar.topics.catalog import Catalog, Topic
from kafka_sidecar.topics.names import TopicName, TopicNames
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kafka_sidecar.wire.records import split_batches
from tests.support.batches import batch
from tests.support.fleet import TestFleet
from tests.support.memory_log import MemoryLog
from tests.support.partitions import open_table, read_all

NAME = TopicName("public", "default", "t")
TOPIC_ID = uuid.uuid5(uuid.NAMESPACE_DNS, "t")
PARTITIONS = 2
PRODUCERS = 3


@dataclass(eq=False)
class Sidecar:
    """A sidecar's write path from the frame to the log, which both ways share."""

    logs: dict[str, MemoryLog] = field(default_factory=dict)
    aborted: int = 0
    waiting_since: float | None = None
    ordinary: int = 0  # requests that took the ordinary way
    may_be_ordinary: bool = True

    def __post_init__(self) -> None:
        self.refused = RefusedBatches()
        self.catalog = Catalog(cast(Any, None), TopicNames("public/default", "public/__kafka"), lambda: 0.0)
        self.catalog._remember(Topic(NAME, PARTITIONS, TOPIC_ID, 0.0))
        self.table = open_table(lambda topic, name: self.logs.setdefault(topic, MemoryLog()).named(name))
        self.fleet = TestFleet(Member(0, "127.0.0.1", 9092))
        self.services = Services(
            config=KafkaConfig(),
            catalog=self.catalog,
            configs=cast(Any, None),
            partitions=self.table,
            sessions=FetchSessionCache(),
            groups=cast(Any, None),
            peers=cast(Any, None),
            fleet=self.fleet,
            mirror=cast(Any, None),
            in_turn=KeyedLock(),
            log_starts=cast(Any, None),
            transactions=cast(Any, None),
            answers=AnswerShare(2**30),
            clock=asyncio.get_running_loop().time,
            wall_clock=lambda: int(time.time() * 1000),
        )
        self.dispatch = Dispatcher(self.services.clock)

    def abort(self) -> None:
        self.aborted += 1

    def begin(self, *records: bytes, version: int = 13, acks: int = -1) -> BegunRequest:
        """One request with a batch for each of the first partitions."""
        partitions = [PartitionProduceData(index=index, records=data) for index, data in enumerate(records)]
        named = {"topic_id": TOPIC_ID} if version >= 13 else {"name": "t"}
        topic = TopicProduceData(partition_data=partitions, **cast(Any, named))
        frame = bytearray(struct.pack(">hhih", 0, version, 1, -1) + b"\0" * (version >= 9))
        ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[topic]).write(version, frame)
        if not self.may_be_ordinary:
            self.services.produce_partitions._partitions.clear()
        handled = self.dispatch(cast(Any, self), memoryview(bytes(frame)))
        self.ordinary += isinstance(handled, OrdinaryProduce)
        return handled

    async def produce(self, *records: bytes, version: int = 13, acks: int = -1) -> list[tuple[ErrorCode, int, int]]:
        handled = self.begin(*records, version=version, acks=acks)
        async with asyncio.timeout(10):
            answer: Any = await settled(handled.answer)
        if answer is None:
            return []
        frame = memoryview(b"".join(handled.encode(answer)))
        assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 1)
        response = ProduceResponse.read(version, frame[8 + (version >= 9) :])
        return [
            (part.error_code, part.base_offset, part.log_start_offset)
            for topic in response.responses
            for part in topic.partition_responses
        ]

    def partition(self, index: int) -> Any:
        return self.table.get(NAME.partition(index))

    def log(self, index: int) -> MemoryLog:
        return self.logs.setdefault(NAME.partition(index), MemoryLog())


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12, 13])
@pytest.mark.parametrize("acks", [-1, 1])
async def test_from_the_second_batch_on_a_producer_takes_the_ordinary_way(version: int, acks: int) -> None:
    sidecar = Sidecar()
    log_start = 0 if version >= 5 else -1
    first = batch(b"a", b"b", producer_id=1, epoch=0, sequence=0)
    assert await sidecar.produce(first, version=version, acks=acks) == [(ErrorCode.NONE, 0, log_start)]
    assert [part[0] for part in await sidecar.produce(batch(b"x"), batch(b"y"), version=version, acks=acks)] == [
        ErrorCode.NONE
    ] * 2
    assert sidecar.ordinary == 0, "the partitions were opened by these"
    for number in range(1, 4):
        data = batch(b"a", b"b", producer_id=1, epoch=0, sequence=2 * number)
        assert (await sidecar.produce(data, version=version, acks=acks))[0][0] is ErrorCode.NONE
        assert [part[0] for part in await sidecar.produce(batch(b"x"), batch(b"y"), version=version)] == [
            ErrorCode.NONE
        ] * 2
    assert sidecar.ordinary == 6
    await sidecar.table.close()


async def test_acks_0_is_answered_with_nothing_once_it_is_written() -> None:
    sidecar = Sidecar()
    await sidecar.produce(batch(b"a"))
    assert await sidecar.produce(batch(b"b"), acks=0) == []
    assert sidecar.ordinary == 1
    assert await sidecar.produce(batch(b"c")) == [(ErrorCode.NONE, 2, 0)]
    assert sidecar.aborted == 0
    await sidecar.table.close()


async def test_a_client_of_acks_0_loses_its_connection_when_its_batch_is_lost() -> None:
    sidecar = Sidecar()
    await sidecar.produce(batch(b"a"))
    sidecar.log(0).swallow_receipts = True
    sidecar.begin(batch(b"b"), acks=0)
    sidecar.partition(0).close()
    assert (sidecar.ordinary, sidecar.aborted) == (1, 1)
    await sidecar.table.close()


async def test_targets_keep_no_partition_alive() -> None:
    sidecar = Sidecar()
    for _ in range(2):
        await sidecar.produce(batch(b"a"))
    assert len(sidecar.services.produce_partitions._partitions) == 1
    sidecar.table.forget(NAME.partition(0))
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert len(sidecar.services.produce_partitions._partitions) == 0
    assert await sidecar.produce(batch(b"b")) == [(ErrorCode.NONE, 2, 0)], "it is opened again"
    await sidecar.table.close()


async def test_a_topic_that_was_forgotten_is_resolved_again() -> None:
    sidecar = Sidecar()
    for _ in range(3):
        await sidecar.produce(batch(b"a"))
    assert sidecar.ordinary == 2
    sidecar.catalog.gone(NAME)
    assert await sidecar.produce(batch(b"b")) == [(ErrorCode.UNKNOWN_TOPIC_ID, -1, -1)]
    assert (await sidecar.produce(batch(b"b"), version=12))[0][0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    sidecar.catalog._remember(Topic(NAME, PARTITIONS, uuid.uuid5(uuid.NAMESPACE_DNS, "new"), 0.0))
    assert await sidecar.produce(batch(b"b")) == [(ErrorCode.UNKNOWN_TOPIC_ID, -1, -1)], "it is another topic"
    assert len(sidecar.log(0).entries) == 3
    await sidecar.table.close()


async def test_one_batch_that_is_not_ordinary_sends_the_whole_request_the_other_way() -> None:
    sidecar = Sidecar()
    await sidecar.produce(batch(b"a"), batch(b"b"))
    refused = batch(b"later", timestamp=int(time.time() * 1000) + 2 * MAX_AHEAD_MS)
    assert await sidecar.produce(batch(b"c"), refused) == [
        (ErrorCode.NONE, 1, 0),
        (ErrorCode.INVALID_TIMESTAMP, -1, -1),
    ]
    assert sidecar.ordinary == 0
    assert len(sidecar.log(0).entries) == 2, "it was appended once"
    await sidecar.table.close()


async def test_a_batch_never_overtakes_one_that_waits_for_the_end_of_the_log() -> None:
    sidecar = Sidecar()
    await sidecar.produce(batch(b"0", producer_id=1, epoch=0, sequence=0))
    await sidecar.produce(batch(b"1", producer_id=1, epoch=0, sequence=1))
    sidecar.partition(0)._appender._sender.used_at -= 2 * STALE_FOLD_SECONDS
    sidecar.log(0).read_delay = 0.05
    held = sidecar.begin(batch(b"2", producer_id=1, epoch=0, sequence=2))
    behind = sidecar.begin(batch(b"3", producer_id=1, epoch=0, sequence=3))
    without_producer = sidecar.begin(batch(b"4"))
    for handled in (held, behind, without_producer):
        await settled(handled.answer)
    assert sidecar.ordinary == 1
    values = [value for _, value in await read_all(sidecar.partition(0))]
    assert values.index(b"2") < values.index(b"3")
    assert sorted(filter(None, values)) == [b"0", b"1", b"2", b"3", b"4"]
    await sidecar.table.close()


# --- both ways, side by side

OF_A_PRODUCER = ("again", "gap", "epoch", "zombie", "bad crc", "two at once", "crowd")
OF_THE_LOG = ("roll", "foreign", "lost", "refused", "stale fold", "forget", "reopen")
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("next"), st.integers(0, PRODUCERS - 1), st.integers(1, 3)),
        st.tuples(st.just("both"), st.integers(1, 3), st.just(0)),
        st.tuples(st.sampled_from(OF_A_PRODUCER), st.integers(0, PRODUCERS - 1), st.just(1)),
        st.tuples(st.sampled_from(OF_THE_LOG), st.just(0), st.just(0)),
    ),
    min_size=4,
    max_size=25,
)


@dataclass
class Client:
    """The producers of one run. Both runs have the same."""

    sequences: list[int] = field(default_factory=lambda: [0] * PRODUCERS)
    epochs: list[int] = field(default_factory=lambda: [0] * PRODUCERS)
    last: dict[int, bytes] = field(default_factory=dict)

    def next(self, producer: int, records: int = 1) -> bytes:
        data = batch(
            *[b"%d:%d" % (producer, self.sequences[producer] + number) for number in range(records)],
            producer_id=producer,
            epoch=self.epochs[producer],
            sequence=self.sequences[producer],
        )
        self.sequences[producer] += records
        self.last[producer] = data
        return data


async def _answer(handled: BegunRequest) -> bytes:
    answer: Any = await settled(handled.answer)
    assert answer is not None
    return b"".join(handled.encode(answer))


async def _act(sidecar: Sidecar, client: Client, action: str, producer: int, count: int) -> Any:
    log = sidecar.log(0)
    match action:
        case "next":
            return await sidecar.produce(client.next(producer, count))
        case "both":
            return await sidecar.produce(client.next(0, producer), batch(b"other"))
        case "two at once":
            answers = [sidecar.begin(client.next(producer)), sidecar.begin(client.next(producer))]
            return [await _answer(handled) for handled in answers]
        case "crowd":
            answers = [sidecar.begin(client.next(number % PRODUCERS)) for number in range(3 * MAX_ENTRIES_IN_FLIGHT)]
            return [await _answer(handled) for handled in answers]
        case "again":
            return await sidecar.produce(client.last.get(producer) or client.next(producer))
        case "gap":
            return await sidecar.produce(
                batch(b"gap", producer_id=producer, epoch=client.epochs[producer], sequence=10_000)
            )
        case "epoch":
            client.epochs[producer] += 1
            client.sequences[producer] = 0
            return await sidecar.produce(client.next(producer))
        case "zombie":
            epoch = client.epochs[producer] - 1
            return (
                None
                if epoch < 0
                else await sidecar.produce(batch(b"zombie", producer_id=producer, epoch=epoch, sequence=0))
            )
        case "bad crc":
            return await sidecar.produce(batch(b"changed")[:-1] + b"!")
        case "roll":
            log.roll()
        case "foreign":
            log.write(batch(b"foreign"))
        case "lost":
            log.swallow_receipts = True
            handled = sidecar.begin(client.next(producer))
            await asyncio.sleep(0)
            log.swallow_receipts = False
            log.disconnect()
            return await _answer(handled)
        case "refused":
            log.refuse_sends = 1
            return await sidecar.produce(client.next(producer))
        case "stale fold":
            sidecar.partition(0)._appender._sender.used_at -= 2 * STALE_FOLD_SECONDS
        case "forget":
            sidecar.catalog.forgotten += 1
        case "reopen":
            sidecar.table.forget(NAME.partition(0))
    return None


async def _run(actions: list[tuple[str, int, int]], *, may_be_ordinary: bool) -> tuple[list[Any], list[Any], int]:
    sidecar, client = Sidecar(may_be_ordinary=may_be_ordinary), Client()
    told = [await sidecar.produce(batch(b"first"), batch(b"first"))]
    for action, producer, count in actions:
        told.append(await _act(sidecar, client, action, producer, count))
    seen: list[Any] = []
    for index in range(PARTITIONS):
        partition = sidecar.partition(index)
        seen.append(await read_all(partition))
        states = partition._fold.producers.states
        seen.append(
            {key: (state.epoch, state.last, [tuple(one[:3]) for one in state.batches]) for key, state in states.items()}
        )
        entries = sidecar.log(index).entries
        seen.append(
            [
                (entry.position, entry.last_index, [header.crc for header, _ in split_batches(entry.payload)])
                for entry in entries
            ]
        )
    await sidecar.table.close()
    return told, seen, sidecar.ordinary


@settings(max_examples=60)
@given(ACTIONS)
def test_both_ways_come_to_the_same_answers_and_the_same_log(actions: list[tuple[str, int, int]]) -> None:
    async def both() -> None:
        told, seen, _ = await _run(actions, may_be_ordinary=True)
        expected, log, none = await _run(actions, may_be_ordinary=False)
        assert none == 0
        assert told == expected
        assert seen == log

    asyncio.run(both())


async def test_a_producer_that_was_refused_elsewhere_takes_the_ordinary_way_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_sidecar.apis.state.refused_batches.FORGET_SECONDS", 0.05)
    sidecar = Sidecar()
    await sidecar.produce(batch(b"a", producer_id=1, epoch=0, sequence=0))
    sidecar.refused.note(
        (b"another topic", 0), 1, 0, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, asyncio.get_running_loop().time()
    )
    await sidecar.produce(batch(b"a", producer_id=1, epoch=0, sequence=1))
    assert sidecar.ordinary == 0
    sidecar.refused.answered(None, asyncio.get_running_loop().time())
    await asyncio.sleep(0.1)
    await sidecar.produce(batch(b"a", producer_id=1, epoch=0, sequence=2))
    assert sidecar.ordinary == 1
    await sidecar.table.close()
