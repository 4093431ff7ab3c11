"""A log that contradicts itself is a reason to call someone, unless it is another one: its topic was deleted and made
again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kafka_sidecar.partition.fold.fold import IndexAlarm
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.telemetry import metrics

log = logging.getLogger(__name__)

# The admin API has this long to tell whether the topic was recreated. Without an answer the alarm is raised.
ASK_SECONDS: Final = 10.0
_asking: set[asyncio.Task[None]] = set()


def raise_alarm(name: str, log_: EntryLog, alarm: IndexAlarm) -> None:
    """The partition has ended for it: nothing is served of a log in doubt. What it was is said a moment later."""
    task = asyncio.get_running_loop().create_task(_judge(name, log_, alarm))
    _asking.add(task)
    task.add_done_callback(_asking.discard)


async def _judge(name: str, log_: EntryLog, alarm: IndexAlarm) -> None:
    try:
        async with asyncio.timeout(ASK_SECONDS):
            is_another = await log_.is_another()
    except (PulsarError, TimeoutError):
        is_another = False
    if is_another:
        log.info("partition %s: its topic was deleted and made again (%s)", name, alarm)
    else:
        metrics.INDEX_ALARMS.inc()
        log.error("partition %s: ALARM: %s", name, alarm)
