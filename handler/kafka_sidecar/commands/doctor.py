"""`kafka-sidecar doctor`."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Final

from kafka_sidecar.commands.command import add_config, loaded
from kafka_sidecar.config import Config

if TYPE_CHECKING:
    from kafka_sidecar.doctor.cluster import Finding

TEXT: Final = "check what the Pulsar cluster is set to; ends with 1 where it finds a fault, else with 0"


def add(command: argparse.ArgumentParser) -> None:
    add_config(command)
    command.add_argument("--topics", action="store_true", help="look at every topic too: two admin calls a partition")


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_examine(loaded(options), options.topics))


async def _examine(config: Config, look_at_topics: bool) -> int:
    from kafka_sidecar.doctor.cluster import Severity, examine
    from kafka_sidecar.doctor.topics import examine_topics
    from kafka_sidecar.partition.log.topic_logs import opened

    findings = []
    async with opened(config) as logs:
        for finding in await examine(logs.client, logs.admin, config.kafka.namespace, config.groups.namespace):
            findings.append(_shown(finding))
        if look_at_topics:
            async for finding in examine_topics(logs.client, logs.admin, logs.catalog, config.kafka, config.groups):
                findings.append(_shown(finding))
    faults = sum(finding.severity is Severity.FAULT for finding in findings)
    print(f"{faults} fault{'s' * (faults > 1)}" if faults else "Pulsar is ready for Kafka clients.")
    return 1 if faults else 0


def _shown(finding: Finding) -> Finding:
    print(f"{finding.severity.value:8} {finding.check}: {finding.text}", flush=True)
    return finding
