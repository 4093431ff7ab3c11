"""What no reader is given takes offsets all the same. It is served as a control batch of one record, which every client
steps over.
"""

from __future__ import annotations

import asyncio

from kafka_sidecar.wire.records import CONTROL, NO_PRODUCER_ID, read_header
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, fetch, open_partition


async def test_a_hidden_batch_is_served_as_a_control_batch_of_one_record() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"b0", producer_id=7, epoch=0, sequence=0))
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, 22, "Exceed maximum message size"
    await asyncio.gather(
        *(begin_append(partition, batch(b"b", b"b", producer_id=7, epoch=0, sequence=number)) for number in (1, 3))
    )
    served = b"".join((await fetch(partition, 1)).parts)
    partition.close()
    header = read_header(served)
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (1, 1, 1)
    assert (header.attributes, header.producer_id, header.producer_epoch) == (CONTROL, NO_PRODUCER_ID, -1)
