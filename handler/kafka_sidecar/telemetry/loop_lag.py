"""How late the event loop is: what every answer waits for beside its own work."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# Event loop lag is sampled often enough to see a pause that delays a heartbeat, and too seldom to cost anything.
SAMPLE_SECONDS: Final = 0.25
# The lag metric is the maximum of the last 240 samples (60 s), so that a scrape each minute misses little.
SAMPLES: Final = 240
# A lag of 2 s endangers heartbeats with Kafka's shortest session timeout (6 s, group.min.session.timeout.ms).
LATE_SECONDS: Final = 2.0


class LoopLag:
    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=SAMPLES)
        metrics.LOOP_LAG.set_function(lambda: max(self._samples, default=0.0))

    async def watch(self) -> None:
        """For as long as the process runs."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            self.observe(max(0.0, loop.time() - due))

    def observe(self, lag: float) -> None:
        self._samples.append(lag)
        if lag > LATE_SECONDS:
            log.warning(
                "the event loop was %.1f s late: this process had no processor, or something held it for so long", lag
            )
