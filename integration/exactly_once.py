"""An idempotent producer writes while something breaks; afterwards every record must be there once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from integration.kafka_clients import IN_FLIGHT, Acks, bounds, producer, read, wait_for_room
from integration.patience import LONG, wait_for

# At least so many, and more for as long as the fault lasts: it always meets with records that are under way.
RECORDS: Final = 1_800
_PADDING: Final = b"x" * 100
# Breaks something, once or more often. It gets a function that returns when 100 more records are acknowledged.
Fault = Callable[[Callable[[], None]], None]
_SOME: Final = 100
_BATCH: Final = 20


def _value(number: int) -> bytes:
    return b"record %d" % number + _PADDING


def write_while(address: str, topic: str, fault: Fault) -> Acks:
    """Write at a steady pace; `fault` happens after some records."""
    acks = Acks()
    client = producer(address, **{"message.timeout.ms": 300_000, "batch.num.messages": _BATCH})
    fails: list[BaseException] = []

    def until_more() -> None:
        before = len(acks.acked)
        wait_for(lambda: len(acks.acked) >= before + _SOME)

    def happen() -> None:
        try:
            fault(until_more)
        except BaseException as error:
            fails.append(error)

    thread = threading.Thread(target=happen)
    number = 0
    while number < RECORDS or thread.is_alive():
        if number == RECORDS // 6:
            thread.start()
        wait_for_room(client, IN_FLIGHT * _BATCH)
        client.produce(topic, _value(number), partition=0, callback=acks)
        client.poll(0)
        if number % 10 == 0:
            time.sleep(0.01)  # the pace
        number += 1
    assert client.flush(LONG) == 0
    thread.join(60)
    assert not fails, fails
    assert not acks.failed, acks.failed[:3]
    assert len(acks.acked) == number
    return acks


def assert_once_and_in_order(address: str, topic: str, acks: Acks) -> None:
    """What `write_while` wrote, read back at `address`."""
    low, high = bounds(address, topic)
    count = len(acks.acked)
    found = read(address, topic, count, seconds=60)
    values = [record.value for record in found]
    assert len(set(values)) == len(values), "a record is there twice"
    assert values == [_value(number) for number in range(count)], "lost or out of order"
    assert low == 0
    assert found[-1].offset < high
    by_offset = {record.offset: record.value for record in found}
    assert all(by_offset.get(ack.offset) == ack.value for ack in acks.acked), "an offset told was not true"
