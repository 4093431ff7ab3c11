"""One sidecar as a process: its signals, its metrics port, its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from typing import Final

from prometheus_client import start_http_server

from kafka_sidecar.config import Config, metrics_address
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.process.sidecar import Sidecar

log = logging.getLogger(__name__)

# Python's garbage collector looks for cycles after this many new objects.
YOUNG_OBJECTS: Final = 5_000
# Terminals and service managers may send one signal twice: a repetition within 1 s is not a second signal.
REPEATED_SECONDS: Final = 1.0


def _serve_metrics(config: Config) -> None:
    metrics_at = metrics_address(config)
    if metrics_at is not None:
        try:
            start_http_server(metrics_at[1], metrics_at[0])
        except OSError as error:
            where = f"{config.telemetry.metrics_listen} ({error.strerror})"
            raise ConfigError(
                f"can't serve metrics on {where}: set telemetry.metrics_listen to a free address"
            ) from error


async def _started(sidecar: Sidecar, stop: asyncio.Event, once: bool) -> bool:
    """False where a signal came first."""
    starting = asyncio.create_task(sidecar.start(once=once))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done() and not sidecar.port:  # the sidecar serves no client yet, so nothing has to be drained
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return False
    await starting
    return True


async def run(config: Config, *, once: bool = False, ends_with_input: bool = False) -> int:
    """Serve until SIGTERM or SIGINT, or the end of the standard input; 0 after a clean drain. A second signal does not
    wait.
    """
    sidecar = Sidecar(config)
    stop = sidecar.stop_asked
    force = asyncio.Event()

    loop = asyncio.get_running_loop()
    signalled_at: list[float] = []

    def asked_to_stop() -> None:
        """The first signal drains, also where a drain has begun. One that comes twice at once counts once."""
        now = loop.time()
        if signalled_at and now - signalled_at[0] >= REPEATED_SECONDS:
            force.set()
        signalled_at.append(now)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop)
    if ends_with_input:

        def on_input() -> None:
            if not os.read(0, 1):
                loop.remove_reader(0)
                stop.set()

        loop.add_reader(0, on_input)
    try:
        _serve_metrics(config)
        if not await _started(sidecar, stop, once):
            log.info("stopped before Pulsar could be reached")
            return 0
        # Every full garbage collection looked through all loaded modules and held the event loop for 17 ms. Frozen
        # objects are left out.
        gc.collect()
        gc.freeze()
        # Requests that wait for Pulsar and cached entries outlive the young generation. With Python's default threshold
        # the search for cycles among them took a tenth of the CPU time.
        gc.set_threshold(YOUNG_OBJECTS)
        host, _ = config.kafka.listen_address
        log.info("Kafka clients are served on %s:%d, Pulsar is %s", host, sidecar.port, config.pulsar.url)
        await stop.wait()
        log.info("stopping: no new connections, requests in flight are finished")
        draining = asyncio.create_task(sidecar.drain())
        forced = asyncio.create_task(force.wait())
        await asyncio.wait({draining, forced}, return_when=asyncio.FIRST_COMPLETED)
        clean = draining.done() and draining.result()
        for task in (draining, forced):
            task.cancel()
        log.info("stopped" if clean else "stopped with requests in flight")
        return 0 if clean else 1
    finally:
        await sidecar.close()
