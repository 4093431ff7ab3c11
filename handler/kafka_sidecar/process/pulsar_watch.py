"""Whether Pulsar answers, for alerts: a sidecar that has lost it stays ready, since all of them would have lost it at
once.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.telemetry import metrics

LOOK_SECONDS: Final = 15.0


def pulsar_watch(client: PulsarClient, admin: PulsarAdmin) -> SupervisedTask:
    return every(LOOK_SECONDS, "pulsar_watch", lambda: look(client, admin))


async def look(client: PulsarClient, admin: PulsarAdmin) -> None:
    """Each question has limits of its own: where one address hangs, the next has to be tried."""
    reached = 0
    try:
        await client.protocol_version()
        await admin.cluster.clusters()
        reached = 1
    except PulsarError:
        pass
    finally:
        metrics.PULSAR_REACHED.set(reached)
