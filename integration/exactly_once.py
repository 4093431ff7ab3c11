"""An idempotent producer writes while something breaks; afterwards every record must be there once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from integration.kafka_clients import Acks, bounds, producer, read

RECORDS: Final = 3_000
_PADDING: Final = b"x" * 100


def _value(number: int) -> bytes:
    return b"record %d" % number + _PADDING


def write_while(address: str, topic: str, fault: Callable[[], None]) -> Acks:
    """Write at a steady pace; `fault` happens after a sixth of the records."""
    acks = Acks()
    client = producer(address, **{"message.timeout.ms": 300_000, "batch.num.messages": 20})
    fails: list[BaseException] = []

    def happen() -> None:
        try:
            fault()
        except BaseException as error:
            fails.append(error)

    thread = threading.Thread(target=happen)
    for number in range(RECORDS):
        if number == RECORDS // 6:
            thread.start()
        client.produce(topic, _value(number), partition=0, callback=acks)
        client.poll(0)
        if number % 10 == 0:
            time.sleep(0.01)
    assert client.flush(120) == 0
    thread.join(60)
    assert not fails, fails
    assert not acks.failed, acks.failed[:3]
    return acks


def assert_once_and_in_order(address: str, topic: str, acks: Acks) -> None:
    """What `write_while` wrote, read back at `address`."""
    low, high = bounds(address, topic)
    found = read(address, topic, RECORDS, seconds=60)
    values = [record.value for record in found]
    assert len(set(values)) == len(values), "a record is there twice"
    assert values == [_value(number) for number in range(RECORDS)], "lost or out of order"
    assert low == 0
    assert found[-1].offset < high
    by_offset = {record.offset: record.value for record in found}
    assert len(acks.acked) == RECORDS
    assert all(by_offset.get(ack.offset) == ack.value for ack in acks.acked), "an offset told was not true"
