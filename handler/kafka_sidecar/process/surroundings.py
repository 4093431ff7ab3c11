"""What surrounds a sidecar: Pulsar, time, chance, and the other sidecars. A simulation surrounds it with its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from kafka_sidecar.config import Config
from kafka_sidecar.fleet.peers import Peers
from kafka_sidecar.fleet.server import Answers, ControlServer, Further
from kafka_sidecar.loop.clock import SYSTEM_CLOCK, Clock
from kafka_sidecar.loop.ids import NewId, NewProducerId, new_id, new_producer_id
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    client: PulsarClient
    admin: PulsarAdmin
    coordination_admin: (
        # Separate, so that elections and terms do not queue behind admin calls for partitions that are being opened.
        PulsarAdmin
    )
    clock: Clock
    new_id: NewId
    new_producer_id: NewProducerId
    peers: Peers
    control_server: Callable[[str, Answers, Further], ControlServer]  # the first argument is the name of the sidecar


def real_surroundings(config: Config) -> Surroundings:
    return Surroundings(
        client=PulsarClient(config.pulsar.url, config.pulsar.listener_name or None),
        admin=PulsarAdmin(config.pulsar.admin_url),
        coordination_admin=PulsarAdmin(config.pulsar.admin_url),
        clock=SYSTEM_CLOCK,
        new_id=new_id,
        new_producer_id=new_producer_id,
        peers=Peers(asyncio.get_running_loop().time, config.kafka.namespace),
        control_server=ControlServer,
    )
