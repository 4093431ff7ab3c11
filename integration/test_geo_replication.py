"""Two clusters that copy to each other: what one hides the other hides, and both write on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pulsar
import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import new_topic
from integration.kafka_clients import bounds, consumer, create, produce, producer, read
from integration.launcher.process import free_port
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG
from integration.two_clusters import NAMES, call, two_clusters
from kafka_sidecar.loop.ids import WRITER_PREFIX
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.log.basis import AGAIN_PROPERTY, BASIS_PROPERTY, Basis, KnownProducer
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.pulsar_api_pb2 import KeyValue, MessageMetadata
from tests.contract.case import Scribe
from tests.support.batches import batch

NAMESPACE: Final = "public/geo"
SECONDS: Final = 60.0
ISOLATION: Final = pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])


@dataclass(frozen=True)
class Side:
    name: str
    pulsar: Standalone
    sidecar: SidecarProcess

    @property
    def kafka(self) -> str:
        return self.sidecar.address


def _sidecar(directory: Path, side: Standalone) -> SidecarProcess:
    control = f"127.0.0.1:{free_port()}"
    return SidecarProcess(directory, side.url, side.admin_url, kafka__namespace=NAMESPACE, control__listen=control)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    directory = tmp_path_factory.mktemp("geo")
    with two_clusters(directory, NAMESPACE) as brokers, ExitStack() as sidecars:
        sides = []
        for name, broker in zip(NAMES, brokers, strict=True):
            sidecar = _sidecar(directory / f"sidecar-{name}", broker)
            sidecars.callback(sidecar.stop)
            sidecar.start()
            sides.append(Side(name, broker, sidecar))
        east, west = sides
        yield east, west
        for side in sides:
            assert side.sidecar.stop() == 0
            assert not side.sidecar.complaints()


def _made(sides: Sequence[Side], entry_format: str | None) -> str:
    """A topic that both clusters have. Some versions of Pulsar make the other one's by themselves."""
    name = new_topic()
    for side in sides:
        _make(side, name, name, NAMESPACE, entry_format)
    return name


def _make(side: Side, topic: str, local: str, namespace: str, entry_format: str | None) -> None:
    configs = {} if entry_format is None else {"entry.format": entry_format}
    try:
        create(side.kafka, topic, configs=configs)
    except KafkaException:  # it is there
        call(side.pulsar, "PUT", f"persistent/{namespace}/{local}/properties", configs)


def _until_there(side: Side, topic: str, end: int) -> None:
    """Until the replicator has copied all."""
    deadline = time.monotonic() + SECONDS
    while bounds(side.kafka, topic)[1] < end:
        assert time.monotonic() < deadline, f"{side.name} has {bounds(side.kafka, topic)} of {end} offsets"
        time.sleep(0.1)


def _values(address: str, topic: str, isolation: str = "read_uncommitted") -> list[tuple[int, bytes | None]]:
    """All up to the end."""
    client = consumer(address, **{"isolation.level": isolation, "enable.partition.eof": True})
    client.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[int, bytes | None]] = []
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        message: Message | None = client.poll(0.5)
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            break
        found.append((message.offset() or 0, message.value()))
    client.close()
    return found


async def _write_as_sidecars(side: Side, topic: str) -> int:
    """What sidecars leave behind whose connections broke: of two records a batch, those that count are 0, 2, 4 and
    6.
    """
    client = PulsarClient(side.pulsar.url)
    producer_id = uuid.uuid4().int >> 66
    names = [f"{WRITER_PREFIX}{uuid.uuid4()}" for _ in range(2)]
    again = MessageMetadata(properties=[KeyValue(key=AGAIN_PROPERTY, value=b"")]).SerializePartialToString()
    count = MessageMetadata(num_messages_in_batch=2).SerializePartialToString()
    entries = [  # writer, its sequence, the batch, what the writer knew, whether it is sent again
        (0, 0, 0, -1, False),
        (0, 1, 2, 1, False),
        (0, 1, 2, 1, True),  # its first try has landed after all
        (1, 0, 2, 1, False),  # through another sidecar
        (0, 2, 6, 1, False),  # the broker has refused the one before it
        (0, 3, 4, 1, True),
        (0, 4, 6, 3, False),
    ]
    for who, sequence, first, known, is_again in entries:
        receipts = Scribe()
        writer = await client.producer(f"persistent://{NAMESPACE}/{topic}-partition-0", names[who], receipts)
        data = batch(b"%d" % first, b"%d" % (first + 1), producer_id=producer_id, epoch=0, sequence=first)
        basis = Basis(BEFORE_ALL, [KnownProducer(0 if known >= 0 else -1, known)]).encode()
        writer.send(sequence, 2, KAFKA.fields + count + (again if is_again else b""), data, (BASIS_PROPERTY, basis))
        await receipts.receipt(sequence)
        writer.close()
    await client.close()
    return 2 * len(entries)


@ISOLATION
def test_the_other_cluster_hides_what_was_hidden(sides: tuple[Side, Side], tmp_path: Path, isolation: str) -> None:
    east, west = sides
    topic = _made(sides, "kafka")
    end = asyncio.run(_write_as_sidecars(east, topic))
    _until_there(west, topic, end)
    there = _values(west.kafka, topic, isolation)
    assert there == _values(east.kafka, topic, isolation)
    assert [value for _, value in there] == [b"%d" % number for number in range(8)]
    for side in sides:  # one that has seen nothing of it
        fresh = _sidecar(tmp_path / side.name, side.pulsar)
        fresh.start()
        try:
            assert _values(fresh.address, topic, isolation)[: len(there)] == there
            produce(fresh.address, topic, [b"behind"], settings={"enable.idempotence": True})
        finally:
            assert fresh.stop() == 0
    assert not [line for line in fresh.complaints()]


@pytest.mark.parametrize("entry_format", ["kafka", "pulsar", None], ids=["kafka", "pulsar", "as it comes"])
def test_clusters_that_copy_to_each_other_write_on(sides: tuple[Side, Side], entry_format: str | None) -> None:
    topic = _made(sides, entry_format)
    written: list[bytes] = []
    for turn in range(3):
        for side in sides:
            values = [b"%s %d/%d" % (side.name.encode(), turn, number) for number in range(5)]
            written += values
            produce(side.kafka, topic, values, settings={"linger.ms": 100, "enable.idempotence": True})
        for side in sides:
            _until_there(side, topic, len(written))
    for side in sides:
        found = _values(side.kafka, topic)
        assert [offset for offset, _ in found] == list(range(len(written)))
        assert sorted(value or b"" for _, value in found) == sorted(written)
        for other in sides:  # each one's in its order
            prefix = other.name.encode()
            own = [value for _, value in found if (value or b"").startswith(prefix)]
            assert own == [value for value in written if value.startswith(prefix)]


def test_a_transaction_ends_in_the_other_cluster_as_it_did_here(sides: tuple[Side, Side]) -> None:
    east, west = sides
    topic = _made(sides, "kafka")
    client: Producer = producer(east.kafka, **{"transactional.id": f"geo-{topic}", "linger.ms": 100})
    client.init_transactions(30)
    for number, end in enumerate((client.commit_transaction, client.abort_transaction, client.commit_transaction)):
        client.begin_transaction()
        for record in range(3):
            client.produce(topic, b"%d/%d" % (number, record), partition=0)
        client.flush(LONG)  # else what is aborted is never sent
        end(30)
    _until_there(west, topic, 12)
    committed = [b"%d/%d" % (number, record) for number in (0, 2) for record in range(3)]
    for side in sides:
        assert [value for _, value in _values(side.kafka, topic, "read_committed")] == committed
        assert len(_values(side.kafka, topic)) == 9


def test_what_was_written_before_replication_is_unreadable_and_can_be_skipped_or_deleted(
    sides: tuple[Side, Side], tmp_path: Path
) -> None:
    east, west = sides
    namespace = f"public/later-{uuid.uuid4().hex[:8]}"
    for side in sides:
        call(side.pulsar, "PUT", f"namespaces/{namespace}", {"replication_clusters": [side.name]})
        call(
            side.pulsar,
            "POST",
            f"namespaces/{namespace}/retention",
            {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
        )
    local = new_topic()
    topic = f"{namespace}/{local}"
    for side in sides:
        _make(side, topic, local, namespace, "kafka")
    settings = {"linger.ms": 100, "enable.idempotence": True}
    produce(east.kafka, topic, [b"a", b"b", b"c"], settings=settings)
    produce(east.kafka, topic, [b"d"], settings=settings)
    call(east.pulsar, "POST", f"namespaces/{namespace}/replication", ["east", "west"])
    _until_there(west, topic, 2)
    with pytest.raises((AssertionError, KafkaException)):
        read(west.kafka, topic, 1, seconds=5)
    assert [(one.offset, one.value) for one in read(west.kafka, topic, 1, offset=1)] == [(1, b"d")]
    later = _sidecar(tmp_path, east.pulsar)  # it asks for the policies when it opens the partition
    later.start()
    produce(later.address, topic, [b"e", b"f"], settings=settings)
    assert later.stop() == 0
    _until_there(west, topic, 4)
    assert [one.value for one in read(west.kafka, topic, 3, offset=1)] == [b"d", b"e", b"f"]
    command = [sys.executable, "-m", "kafka_sidecar", "ctl", "skip", topic, "0", "0", "--address", west.sidecar.control]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert [value for _, value in _values(west.kafka, topic)] == [b"d", b"e", b"f"], "an operator has skipped it"
    client = AdminClient({"bootstrap.servers": west.kafka})
    deleted = client.delete_records([TopicPartition(topic, 0, 1)])
    assert [one.result(30).low_watermark for one in deleted.values()] == [1]
    assert [value for _, value in _values(west.kafka, topic)] == [b"d", b"e", b"f"], "from the new start on"


def _doctor(side: Side) -> str:
    environment = {
        "KAFKA_SIDECAR_PULSAR__URL": side.pulsar.url,
        "KAFKA_SIDECAR_PULSAR__ADMIN_URL": side.pulsar.admin_url,
        "KAFKA_SIDECAR_KAFKA__NAMESPACE": NAMESPACE,
    }
    command = [sys.executable, "-m", "kafka_sidecar", "doctor", "--topics"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout


def test_nobodys_native_consumer_loses_records_and_the_doctor_says_what_that_costs(sides: tuple[Side, Side]) -> None:
    east, west = sides
    topic = _made(sides, "kafka")
    native = pulsar.Client(east.pulsar.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    billing = native.subscribe(f"persistent://{NAMESPACE}/{topic}-partition-0", "billing")
    produce(east.kafka, topic, [b"a", b"b", b"c"], settings={"linger.ms": 100})
    message = billing.receive(20_000)
    assert message.data().endswith(b"c\0"), "the bytes of the whole batch"
    native.close()
    (finding,) = [line for line in _doctor(east).splitlines() if topic in line]
    assert finding.startswith("fault")
    assert "billing" in finding
    _until_there(west, topic, 1)
    with pytest.raises((AssertionError, KafkaException)):
        read(west.kafka, topic, 1, seconds=5)
