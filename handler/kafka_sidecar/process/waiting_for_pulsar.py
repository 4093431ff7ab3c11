"""A sidecar starts when Pulsar is there and set as it must be."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kafka_sidecar.config import Config
from kafka_sidecar.doctor import cluster as doctor
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient

log = logging.getLogger(__name__)

# Pause between two attempts to reach Pulsar.
LOOK_SECONDS: Final = 2.0
# Pause between two warnings that Pulsar can't be reached.
SAY_SECONDS: Final = 60.0


async def wait_for_pulsar(client: PulsarClient, admin: PulsarAdmin, config: Config, once: bool) -> None:
    """A pod may start before its cluster. A wrong setting ends the start; a cluster that is not there yet is waited
    for.
    """
    loop = asyncio.get_running_loop()
    start = doctor.StartGate(once)
    say_at = loop.time()
    while True:
        findings = await doctor.examine(client, admin, config.kafka.namespace, config.groups.namespace)
        faults = [finding for finding in findings if finding.severity is doctor.Severity.FAULT]
        if not faults:
            break
        texts = "\n  ".join(finding.text for finding in faults)
        if not start.may_wait(faults, loop.time()):
            raise ConfigError(f"Pulsar is not ready for Kafka clients:\n  {texts}")
        if loop.time() >= say_at:
            say_at = loop.time() + SAY_SECONDS
            log.warning("waiting for Pulsar:\n  %s", texts)
        await asyncio.sleep(LOOK_SECONDS)
    for finding in findings:
        if finding.severity is doctor.Severity.WARNING:
            log.warning("%s", finding.text)
