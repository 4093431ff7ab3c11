"""`serve --workers N`: a fleet on one host, a process and a core for each member.

The supervisor serves nobody. It starts the workers, starts one again that has ended, and has all drain when it is to
stop. Each worker has ports of its own: two processes that write to one partition would make each acknowledgement wait
for the tail reader.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from kafka_sidecar.config import ENV_PREFIX, Config
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.model.sidecar import endpoint_of

log = logging.getLogger(__name__)

MOST_WORKERS: Final = 64
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
# A worker that ends after 60 s or more was able to start, so the next one is started after the shortest pause.
RAN_SECONDS: Final = 60.0
EVERYWHERE: Final = frozenset(("", "0.0.0.0", "::"))  # noqa: S104 - looked for, not listened on
# A second signal kills the workers without a drain. But terminals and service managers may send one signal twice: a
# repetition within 1 s is ignored.
REPEATED_SECONDS: Final = 1.0
# Exit status of the command line for a wrong setting: a restart would fail in the same way. Once a worker has run for
# 60 s, the status has another cause, such as a port that is taken, and the other workers go on.
WRONG_SETTING: Final = 2
# Exit status for a worker that the operating system could not start (os.EX_OSERR).
NOT_STARTED: Final = 71


def worker_config(config: Config, number: int, workers: int) -> Config:
    """What a worker has of its own: node id, addresses."""
    kafka, control, telemetry = config.kafka, config.control, config.telemetry
    return replace(
        config,
        kafka=replace(
            kafka,
            node_id=kafka.node_id * workers + number,
            listen=_shifted("kafka.listen", kafka.listen, number),
            advertised=_shifted("kafka.advertised", kafka.advertised or kafka.listen, number),
            external_listen=_shifted("kafka.external_listen", kafka.external_listen, number),
            external_advertised=_shifted("kafka.external_advertised", kafka.own_external_advertised, number),
        ),
        control=replace(
            control,
            listen=_shifted("control.listen", control.listen, number),
            advertised=_shifted("control.advertised", control.advertised, number),
        ),
        telemetry=replace(
            telemetry,
            metrics_listen=_shifted("telemetry.metrics_listen", telemetry.metrics_listen, number),
        ),
    )


def check_workers(config: Config, workers: int) -> None:
    if not 1 <= workers <= MOST_WORKERS:
        raise ConfigError(f"--workers {workers}: write a number from 1 to {MOST_WORKERS}")
    host, port = config.kafka.listen_address
    if not config.kafka.advertised and host in EVERYWHERE:
        raise ConfigError(
            f"--workers {workers}: kafka.listen is {config.kafka.listen!r}, which names no address for clients: "
            "set kafka.advertised to the host and the first port"
        )
    if port == 0:
        raise ConfigError(
            f"--workers {workers}: kafka.listen is {config.kafka.listen!r}: give the first port, each worker takes the "
            "next"
        )
    if not config.groups.coordinate:
        raise ConfigError(
            f"--workers {workers}: groups.coordinate is false, and workers are a fleet, which coordinates: set it to "
            "true"
        )
    worker_config(config, workers - 1, workers)
    _check_ports(config, workers)


def _check_ports(config: Config, workers: int) -> None:
    """Each address takes as many ports as there are workers."""
    addresses = {
        "kafka.listen": config.kafka.listen,
        "kafka.external_listen": config.kafka.external_listen,
        "control.listen": config.control.listen,
        "telemetry.metrics_listen": config.telemetry.metrics_listen,
    }
    found = ((name, endpoint_of(address)) for name, address in addresses.items())
    listening = sorted(
        (endpoint.port, endpoint.host, name) for name, endpoint in found if endpoint is not None and endpoint.port
    )
    for (port, host, name), (next_port, next_host, next_name) in combinations(listening, 2):
        if next_port < port + workers and (host == next_host or {host, next_host} & EVERYWHERE):
            raise ConfigError(
                f"--workers {workers}: {name} takes ports {port} to {port + workers - 1}, and {next_name} begins at "
                f"{next_port}:"
                " leave room for a port of each worker"
            )


def _shifted(name: str, address: str, number: int) -> str:
    """The worker's port; one that the system chooses stays so."""
    if not address:
        return ""
    host, _, port = address.rpartition(":")
    shifted = int(port) + number if int(port) else 0
    if shifted > 65_535:
        raise ConfigError(f"{name} is {address!r}: the ports of all workers must be below 65536")
    return f"{host}:{shifted}"


def worker_environment(config: Config, number: int, workers: int) -> dict[str, str]:
    own = worker_config(config, number, workers)
    values = {
        "KAFKA__NODE_ID": str(own.kafka.node_id),
        "KAFKA__LISTEN": own.kafka.listen,
        "KAFKA__ADVERTISED": own.kafka.advertised,
        "KAFKA__EXTERNAL_LISTEN": own.kafka.external_listen,
        "KAFKA__EXTERNAL_ADVERTISED": own.kafka.external_advertised,
        "CONTROL__LISTEN": own.control.listen,
        "CONTROL__ADVERTISED": own.control.advertised,
        "TELEMETRY__METRICS_LISTEN": own.telemetry.metrics_listen,
    }
    return {ENV_PREFIX + name: value for name, value in values.items()}


class Supervisor:
    def __init__(self, command: Sequence[str], environments: Sequence[dict[str, str]]) -> None:
        self._command = command
        self._environments = environments
        self._stopping = asyncio.Event()
        self._workers: dict[int, asyncio.subprocess.Process] = {}
        self._status = 0
        self._have_run = False  # True once any worker has run for 60 s: then the settings are right
        self._signalled_at = 0.0

    async def run(self) -> int:
        """Until a signal stops it, or a setting is wrong; the worst of the workers' statuses."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._on_signal)
        async with asyncio.TaskGroup() as group:
            for number in range(len(self._environments)):
                group.create_task(self._keep(number))
        return self._status

    def _on_signal(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self._stopping.is_set():
            self._signalled_at = now
            self._stop()
        elif now - self._signalled_at >= REPEATED_SECONDS:
            for worker in self._workers.values():
                if worker.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(
                            worker.pid, signal.SIGKILL
                        )  # not Process.kill(): it may take the exit status before the event loop does (bpo-43884)

    def _stop(self) -> None:
        """Their input ends: however often that is said, and whatever signals reach it besides, it drains once."""
        self._stopping.set()
        for worker in self._workers.values():
            if worker.stdin is not None:
                worker.stdin.close()

    async def _keep(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            begun = loop.time()
            status = await self._run_once(number)
            ran = loop.time() - begun
            self._have_run |= ran >= RAN_SECONDS
            if self._stopping.is_set() or (status == WRONG_SETTING and not self._have_run):
                self._status = max(self._status, abs(status))
                self._stop()
                return
            if status == 0:
                log.info("worker %d was drained, and is not started again", number)
                return
            pause = FIRST_PAUSE if ran >= RAN_SECONDS else min(2 * pause, LONGEST_PAUSE)
            log.error("worker %d has ended with status %d and is started again in %.0f s", number, status, pause)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _run_once(self, number: int) -> int:
        """The status with which it has ended."""
        # A session of its own: else Ctrl-C in a terminal would reach the worker twice, and the second signal ends it
        # without a drain. The worker notices by the end of its standard input that the supervisor is gone.
        try:
            worker = await asyncio.create_subprocess_exec(
                *self._command, env=self._environments[number], stdin=asyncio.subprocess.PIPE, start_new_session=True
            )
        except OSError as error:  # for example, there is no memory for a new process at the moment
            log.error("worker %d can't be started: %s", number, error)
            return NOT_STARTED
        self._workers[number] = worker
        log.info("worker %d is process %d", number, worker.pid)
        if self._stopping.is_set():
            self._stop()
        return await worker.wait()


async def supervise(
    config: Config, workers: int, arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> int:
    """`arguments` are those of `serve` without --workers."""
    command = [sys.executable, "-m", "kafka_sidecar", "serve", "--worker", *arguments]
    environments = [{**environment, **worker_environment(config, number, workers)} for number in range(workers)]
    first, last = (worker_config(config, number, workers).kafka.advertised for number in (0, workers - 1))
    log.info("starting %d workers, which clients find at %s to %s", workers, first, last)
    return await Supervisor(command, environments).run()
