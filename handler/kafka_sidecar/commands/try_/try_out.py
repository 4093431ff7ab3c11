"""`kafka-sidecar try`: a record is written through running sidecars and read back, as any Kafka client would."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from kafka_sidecar.errors import CommandFailed

OWN_TOPIC: Final = "kafka-sidecar-try"
# Between two tries to connect: sidecars that start may not listen yet.
PAUSE_SECONDS: Final = 0.5


class _LastWords(logging.Handler):
    """What aiokafka logs and does not raise: why an address can't be connected to."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


async def try_out(bootstrap: str, topic: str, seconds: float, say: Callable[[str], None]) -> int:
    """`topic` is there already; an empty one means a topic that is made for this, and deleted."""
    log, last_words = logging.getLogger("aiokafka"), _LastWords()
    propagates, log.propagate = log.propagate, False  # our own sentence says why it failed
    log.addHandler(last_words)
    done = "no answer yet"
    try:
        async with asyncio.timeout(seconds):
            admin = await _connected(bootstrap)
            try:
                if not topic:
                    await _create(admin)
                done, last_words.text = "connected", ""
                record = uuid.uuid4().bytes
                offset, ms = await _written(bootstrap, topic or OWN_TOPIC, record)
                say(f"written: offset {offset} of {topic or OWN_TOPIC}-0, acknowledged after {ms:.0f} ms")
                done = "written, and not read back"
                say(f"read back after {await _read_back(bootstrap, topic or OWN_TOPIC, offset, record):.0f} ms")
            finally:
                if not topic:
                    await admin.delete_topics([OWN_TOPIC], timeout_ms=5_000)
                await admin.close()
    except TimeoutError:
        why = f" ({last_words.text})" if last_words.text else ""
        look = "look at the sidecars' logs and at `kafka-sidecar doctor`"
        raise CommandFailed(f"{bootstrap}: {done} after {seconds:.0f} s{why}; {look}") from None
    except (KafkaError, OSError) as error:
        raise CommandFailed(f"{bootstrap}: {done}, then {type(error).__name__}: {error}") from error
    finally:
        log.removeHandler(last_words)
        log.propagate = propagates
    return 0


async def _connected(bootstrap: str) -> AIOKafkaAdminClient:
    while True:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            await admin.start()
        except (KafkaError, OSError):
            await admin.close()
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return admin


async def _create(admin: AIOKafkaAdminClient) -> None:
    answer = await admin.create_topics([NewTopic(OWN_TOPIC, 1, 1)])
    for _, code, *message in answer.topic_errors:
        if code not in (0, TopicAlreadyExistsError.errno):
            raise CommandFailed(
                f"the topic {OWN_TOPIC} can't be made: {for_code(code).__name__} {' '.join(map(str, message))}"
            )


async def _written(bootstrap: str, topic: str, record: bytes) -> tuple[int, float]:
    """Its offset, and the milliseconds that it took."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True) as producer:
        begun = asyncio.get_running_loop().time()
        written = await producer.send_and_wait(topic, record, partition=0)
    return written.offset, 1000 * (asyncio.get_running_loop().time() - begun)


async def _read_back(bootstrap: str, topic: str, offset: int, record: bytes) -> float:
    """The milliseconds until it was there."""
    begun = asyncio.get_running_loop().time()
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False) as consumer:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek(place, offset)
        found = await consumer.getone()
    if (found.offset, found.value) != (offset, record):
        raise CommandFailed(
            f"offset {offset} of {topic}-0 was read, and is not the record that was written there (it has offset "
            f"{found.offset})"
        )
    return 1000 * (asyncio.get_running_loop().time() - begun)
