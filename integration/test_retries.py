"""A retry is recognised after kill -9, however much was written since: the answer to its first try was lost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.produce.v8.request import PartitionProduceData, TopicProduceData

from integration import support
from integration.conftest import Cluster
from integration.fleet import Load, pass_over
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG
from integration.raw import RawConnection, milliseconds
from tests.support.batches import batch

PRODUCER = 4_242
LOST = batch(b"pay 100", producer_id=PRODUCER, epoch=0, sequence=0)


async def _produce(address: str, topic: str, *batches: bytes) -> list[tuple[int, int]]:
    """Error and base offset of each, sent one behind the other."""
    connection = await RawConnection.open(address)
    try:
        return [await _one(connection, topic, data) for data in batches]
    finally:
        connection.close()


async def _one(connection: RawConnection, topic: str, data: bytes) -> tuple[int, int]:
    partition: dict[str, Any] = {"index": 0, "records": data}
    asked: dict[str, Any] = {"name": topic, "partition_data": (PartitionProduceData(**partition),)}
    answer = await connection.ask(
        0, 8, transactional_id=None, acks=-1, timeout=milliseconds(20_000), topic_data=(TopicProduceData(**asked),)
    )
    found = answer.responses[0].partition_responses[0]
    return int(found.error_code), int(found.base_offset)


def _write(address: str, topic: str, count: int, size: int) -> None:
    """Each record is an entry of its own, of a producer without an id."""
    producer = ck.Producer(
        {
            "bootstrap.servers": address,
            "batch.num.messages": 1,
            "message.max.bytes": 2_000_000,
            "queue.buffering.max.kbytes": 200_000,
        }
    )
    for number in range(count):
        producer.produce(topic, b"%d" % number + b"." * size, partition=0)
    assert producer.flush(LONG) == 0


def _offsets_of(address: str, topic: str, value: bytes, end: int) -> list[int]:
    consumer = ck.Consumer(
        {"bootstrap.servers": address, "group.id": topic, "enable.auto.commit": False, "enable.partition.eof": True}
    )
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    found, reached, until = [], 0, time.monotonic() + LONG
    while reached < end and time.monotonic() < until:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            reached = message.offset() + 1
            if message.value() == value:
                found.append(message.offset())
    consumer.close()
    assert reached >= end
    return found


@pytest.mark.parametrize(
    ("before", "since"),
    [((60, 900_000), (41, 10)), ((10, 10), (8_000, 100))],
    ids=["a bulk load before it", "four windows behind it"],
)
def test_a_retry_is_recognised_after_kill_9(
    own_sidecar: SidecarProcess, topic: str, before: tuple[int, int], since: tuple[int, int]
) -> None:
    admin = AdminClient({"bootstrap.servers": own_sidecar.address})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    _write(own_sidecar.address, topic, *before)
    [(error, first)] = asyncio.run(_produce(own_sidecar.address, topic, LOST))
    assert (error, first) == (0, before[0])
    others = [batch(b"other", producer_id=PRODUCER + 1 + number, epoch=0, sequence=0) for number in range(20)]
    asyncio.run(_produce(own_sidecar.address, topic, *others))
    _write(own_sidecar.address, topic, *since)
    own_sidecar.kill()
    own_sidecar.start()
    begun = time.monotonic()
    assert asyncio.run(_produce(own_sidecar.address, topic, LOST)) == [(0, first)]
    print(f"answered after {time.monotonic() - begun:.3f} s")
    end = before[0] + 1 + len(others) + since[0]
    assert _offsets_of(own_sidecar.address, topic, b"pay 100", end) == [first]


def test_a_retry_is_recognised_after_kill_9_under_load(own_sidecar: SidecarProcess, topic: str) -> None:
    """Of others, which lose nothing by it and have nothing twice."""
    admin = AdminClient({"bootstrap.servers": own_sidecar.address})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    assert asyncio.run(_produce(own_sidecar.address, topic, LOST)) == [(0, 0)]
    _write(own_sidecar.address, topic, 8_000, 100)
    pass_over(own_sidecar.address, topic, 1, 8_001)
    load = Load(
        [own_sidecar.address], topic, 1, {"request.timeout.ms": 10_000, "socket.timeout.ms": 11_000}, rest=0.002
    )
    try:
        for _ in range(2):
            load.wait_for_more(500)
            own_sidecar.kill()
            own_sidecar.start()
            assert asyncio.run(_produce(own_sidecar.address, topic, LOST)) == [(0, 0)]
        load.wait_for_more()
    finally:
        load.stop()
    assert [one for one in load.failed if "_ALL_BROKERS_DOWN" not in one] == [], (
        "there is one sidecar, and it was killed"
    )
    load.check()
    assert _offsets_of(own_sidecar.address, topic, b"pay 100", 8_001) == [0]


def test_sidecars_go_on_where_somebody_has_deleted_what_was_kept(cluster: Cluster, tmp_path: Path, topic: str) -> None:
    sidecar = SidecarProcess(
        tmp_path / "sidecar", cluster.pulsar_url, cluster.admin_url, groups__namespace=f"public/{topic}"
    )
    sidecar.start()
    try:
        again = f"{topic}-again"
        client = AdminClient({"bootstrap.servers": sidecar.address})
        for created in client.create_topics([NewTopic(topic, 1), NewTopic(again, 1)]).values():
            created.result(30)
        assert asyncio.run(_produce(sidecar.address, topic, LOST)) == [(0, 0)]
        support.admin(
            "DELETE", f"{cluster.admin_url}/admin/v2/persistent/public/{topic}/__kept_states/partitions?force=true"
        )
        assert asyncio.run(_produce(sidecar.address, again, LOST)) == [(0, 0)], "a partition that was not open before"
        _write(sidecar.address, again, 3_000, 10)
        sidecar.kill()
        sidecar.start()
        assert asyncio.run(_produce(sidecar.address, again, LOST)) == [(0, 0)]
        assert _offsets_of(sidecar.address, again, b"pay 100", 3_001) == [0]
    finally:
        sidecar.stop()
