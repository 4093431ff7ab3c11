"""Both worlds on one topic: what each client writes, in each format, is what every other client reads, field by
field.
"""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pulsar
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from integration.conftest import Cluster, new_topic
from integration.kafka_clients import create, producer, read
from integration.launcher.jars import Bundle
from integration.launcher.jvm import short_lived_tool
from integration.launcher.kafka import tools
from integration.launcher.programs import java_program
from integration.launcher.pulsar import bundle, version_from_environment
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG

COUNT = 20
BASE = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FORMATS = ("kafka", "pulsar")
KAFKA_WRITERS = [f"{client} {codec}" for client in ("librdkafka", "aiokafka", "java") for codec in CODECS]
NATIVE_WRITERS = [
    "native-java single NONE",
    *(f"native-java batched {codec}" for codec in ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")),
    "native-java chunked NONE",
    "native-python single",
    "native-python batched",
]
Headers = tuple[tuple[str, bytes | None], ...]


class Seen(NamedTuple):
    """A record as a Kafka consumer has it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Message(NamedTuple):
    """As a native consumer has it."""

    event_time: int
    key: bytes | None
    value: bytes | None
    properties: dict[str, bytes]


# --- what is written; the Java programs know the same


def key(number: int) -> bytes | None:
    return (None, b"", b"k%d" % number, bytes([0xFF, number]))[number % 4]


def value(number: int) -> bytes | None:
    return (b"v%d" % number * (number + 1), b"v%d" % number * (number + 1), bytes([0, 0xFF, number]), b"", None)[
        number % 5
    ]


def headers(number: int, writer: str) -> Headers:
    null: Headers = () if writer.startswith("aiokafka") else (("null", None),)  # which can't write one
    all_kinds: tuple[Headers, ...] = ((), (("h", b"text"),), (("twice", b"1"), ("twice", b"\xff"), *null))
    return all_kinds[number % 3]


def written(writer: str) -> list[Seen]:
    if not writer.startswith("native"):
        records = [
            Seen(number, BASE + number, key(number), value(number), headers(number, writer)) for number in range(COUNT)
        ]
        if writer.startswith("aiokafka"):  # which writes no record that has neither
            records[4] = records[4]._replace(value=b"")
        return records
    return [_native(writer, number) for number in range(COUNT)]


def _native(writer: str, number: int) -> Seen:
    """Its time is −1 where it is the time at which it was sent."""
    is_python = writer.startswith("native-python")
    own_key = (None, b"k%d" % number, bytes([0xFF, number]), bytes([1, number]))[number % 4]
    if is_python and number % 4 == 2:
        own_key = None
    content = value(number)
    if is_python:
        content = content or b""
    offset = number
    if "chunked" in writer:
        content = LARGE if number == 1 else content
        offset += number > 0  # the large one takes two
    has_more = number % 2 == 1
    own_headers: Headers = (("p", b"text %d" % number),) if has_more else ()
    return Seen(offset, BASE + number if has_more else -1, own_key, content, own_headers)


LARGE = bytes((at * 31 + (at >> 9)) & 0xFF for at in range(6_000_000))


# --- writers


def _write_librdkafka(address: str, topic: str, codec: str) -> None:
    client = producer(address, **{"compression.type": codec, "linger.ms": 50})
    for record in written("librdkafka"):
        client.produce(topic, record.value, record.key, 0, timestamp=record.timestamp, headers=list(record.headers))
    assert client.flush(LONG) == 0


async def _write_aiokafka(address: str, topic: str, codec: str) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=address, compression_type=None if codec == "none" else codec, linger_ms=50
    ) as client:
        acks = [
            await client.send(topic, one.value, one.key, 0, timestamp_ms=one.timestamp, headers=list(one.headers))
            for one in written("aiokafka")
        ]
        await asyncio.gather(*acks)


def _write_native_python(client: pulsar.Client, topic: str, kind: str) -> None:
    writer = client.create_producer(
        _partition(topic), batching_enabled=kind == "batched", batching_max_publish_delay_ms=50
    )
    for record in written(f"native-python {kind}"):
        number = record.offset
        more: dict[str, Any] = {}
        if number % 4 == 1:
            more["partition_key"] = f"k{number}"
        if number % 4 == 3:
            more["ordering_key"] = bytes([1, number]).decode()
        if number % 2 == 1:
            more |= {"properties": {"p": f"text {number}"}, "event_timestamp": record.timestamp}
        writer.send_async(record.value, None, **more)
    writer.flush()
    writer.close()


def _java(program: str, jars: Bundle, *arguments: str) -> str:
    command = java_program(program, jars, short_lived_tool(jars))
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def _partition(topic: str) -> str:
    return f"persistent://public/default/{topic}-partition-0"


# --- readers


def _decoded(text: str) -> bytes | None:
    return None if text == "null" else base64.b64decode(text[1:])


def _pairs(text: str) -> Headers:
    return tuple(
        (name, _decoded(encoded)) for name, _, encoded in (one.partition("=") for one in text.split(",") if one)
    )


async def _read_aiokafka(address: str, topics: dict[str, int]) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = defaultdict(list)
    async with AIOKafkaConsumer(
        bootstrap_servers=address, auto_offset_reset="earliest", max_partition_fetch_bytes=8_000_000
    ) as client:
        client.assign([TopicPartition(topic, 0) for topic in topics])
        async with asyncio.timeout(60):
            while any(len(found[topic]) < count for topic, count in topics.items()):
                for at, records in (await client.getmany(timeout_ms=500)).items():
                    found[at.topic] += [
                        Seen(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)) for one in records
                    ]
    return found


@dataclass
class Matrix:
    """All that was read: by reader, then by topic."""

    topics: dict[tuple[str, str], str]  # by writer and format
    kafka: dict[str, dict[str, list[Seen]]] = field(default_factory=dict)
    native: dict[str, dict[str, list[Message]]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def matrix(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    other = SidecarProcess(tmp_path_factory.mktemp("other"), cluster.pulsar_url, cluster.admin_url)
    other.start()
    native = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    found = Matrix({(writer, form): new_topic() for writer in (*KAFKA_WRITERS, *NATIVE_WRITERS) for form in FORMATS})
    _write_all(cluster, found.topics, native)
    _read_all(cluster, other, found, native)
    yield found
    native.close()
    assert other.stop() == 0


def _write_all(cluster: Cluster, topics: dict[tuple[str, str], str], native: pulsar.Client) -> None:
    java: list[str] = []
    native_java: list[str] = []
    for (writer, form), topic in topics.items():
        create(cluster.kafka, topic, configs={"entry.format": form})
        match writer.split():
            case ["librdkafka", codec]:
                _write_librdkafka(cluster.kafka, topic, codec)
            case ["aiokafka", codec]:
                asyncio.run(_write_aiokafka(cluster.kafka, topic, codec))
            case ["java", codec]:
                java.append(f"{topic}={codec}")
            case ["native-java", kind, codec]:
                native_java.append(f"{_partition(topic)}={kind}={codec}")
            case ["native-python", kind]:
                _write_native_python(native, topic, kind)
    _java("KafkaMatrix", tools(), "write", cluster.kafka, str(COUNT), *java)
    _java("NativeMatrix", bundle(version_from_environment()), "write", cluster.pulsar_url, str(COUNT), *native_java)


def _read_all(cluster: Cluster, other: SidecarProcess, found: Matrix, native: pulsar.Client) -> None:
    topics = list(found.topics.values())
    found.kafka["librdkafka"] = {
        topic: [
            Seen(one.offset, one.timestamp, one.key, one.value, one.headers)
            for one in read(other.address, topic, COUNT)
        ]
        for topic in topics
    }
    found.kafka["aiokafka"] = asyncio.run(_read_aiokafka(cluster.kafka, dict.fromkeys(topics, COUNT)))
    by_java: dict[str, list[Seen]] = defaultdict(list)
    for line in _java("KafkaMatrix", tools(), "read", other.address, str(COUNT), *topics).splitlines():
        topic, offset, timestamp, key_, value_, headers_ = line.split("\t")
        by_java[topic].append(Seen(int(offset), int(timestamp), _decoded(key_), _decoded(value_), _pairs(headers_)))
    found.kafka["java"] = by_java
    places = {_partition(topic): topic for topic in topics}
    natively: dict[str, list[Message]] = defaultdict(list)
    jars = bundle(version_from_environment())
    for line in _java("NativeMatrix", jars, "read", cluster.pulsar_url, str(COUNT), *places).splitlines():
        if line.startswith("persistent://"):
            place, event_time, key_, value_, properties = line.split("\t")
            texts = {name: text or b"" for name, text in _pairs(properties)}
            natively[places[place]].append(Message(int(event_time), _decoded(key_), _decoded(value_), texts))
    found.native["native-java"] = natively
    found.native["native-python"] = {topic: _read_native_python(native, topic) for topic in topics}


def _read_native_python(client: pulsar.Client, topic: str) -> list[Message]:
    reader = client.create_reader(_partition(topic), pulsar.MessageId.earliest)
    messages = []
    while reader.has_message_available():
        one = reader.read_next(10_000)
        properties = {name: text.encode() for name, text in one.properties().items()}
        messages.append(Message(one.event_timestamp(), None, one.data(), properties))
    reader.close()
    return messages


# --- what is compared


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("reader", ["librdkafka", "aiokafka", "java"])
@pytest.mark.parametrize("writer", [*KAFKA_WRITERS, *NATIVE_WRITERS])
def test_kafka_consumers_get_what_was_written(matrix: Matrix, writer: str, reader: str, form: str) -> None:
    found = matrix.kafka[reader][matrix.topics[writer, form]]
    wanted = written(writer)
    timed = [
        one._replace(timestamp=-1) if other.timestamp == -1 else one for one, other in zip(found, wanted, strict=True)
    ]
    assert timed == wanted
    assert all(one.timestamp > BASE for one, other in zip(found, wanted, strict=True) if other.timestamp == -1), (
        "the publish time"
    )


@pytest.mark.parametrize("reader", ["native-java", "native-python"])
@pytest.mark.parametrize("writer", KAFKA_WRITERS)
def test_native_consumers_get_messages_in_format_pulsar(matrix: Matrix, writer: str, reader: str) -> None:
    found = matrix.native[reader][matrix.topics[writer, "pulsar"]]
    assert len(found) == COUNT
    for record, message in zip(written(writer), found, strict=True):
        texts = {name: text for name, text in record.headers if text is not None and text != b"\xff"}
        assert {name: text for name, text in message.properties.items() if name != "kafka.headers"} == texts
        assert message.event_time == record.timestamp
        if reader == "native-java":
            assert (message.key, message.value) == (record.key, record.value)
        else:
            assert message.value == (record.value or b"")


@pytest.mark.parametrize("reader", ["native-java", "native-python"])
@pytest.mark.parametrize("writer", KAFKA_WRITERS)
def test_native_consumers_get_raw_batches_in_format_kafka(matrix: Matrix, writer: str, reader: str) -> None:
    found = matrix.native[reader][matrix.topics[writer, "kafka"]]
    assert found, "nothing was read"
    for message in found:
        assert message.properties["entry.format"] == b"kafka"
        assert message.value is not None
        assert message.value[16] == 2, "a record batch of magic 2"
