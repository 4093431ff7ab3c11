"""Partitions change their leader: the next one has opened them before clients come."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from kafka_sidecar.apis.api import Services
from kafka_sidecar.fleet.peers import PeerUnavailable
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.errors import TopicMissing

log = logging.getLogger(__name__)

# The rest is opened when clients come.
MOST_PARTITIONS: Final = 10_000
# A partition opens in some 20 ms, many at once in less each.
WARM_SECONDS: Final = 2.0
# More would keep the admin API from answering those who ask for something now.
AT_ONCE: Final = 64


async def open_on_new_leaders(services: Services) -> None:
    """Have the other members open what is in use here and led by them; return when it is open, or after two seconds."""
    new_leaders: dict[SidecarInfo, list[str]] = {}
    pace = Pace()
    for partition in services.partitions.names():
        await pace.maybe_yield()
        new_leader = _new_leader(services, partition)
        if new_leader is not None:
            new_leaders.setdefault(new_leader, []).append(partition)
    await asyncio.gather(
        *(
            _open_on_new_leader(services, new_leader, partitions[:MOST_PARTITIONS])
            for new_leader, partitions in new_leaders.items()
        )
    )


async def _open_on_new_leader(services: Services, new_leader: SidecarInfo, partitions: Sequence[str]) -> None:
    try:
        async with asyncio.timeout(WARM_SECONDS):
            await services.peers.warm(new_leader.control, new_leader.name, partitions)
    except (PeerUnavailable, TimeoutError) as error:
        log.info(
            "sidecar %d opens what it leads when clients come: %s",
            new_leader.node_id,
            str(error) or "no answer in time",
        )


def _new_leader(services: Services, partition: str) -> SidecarInfo | None:
    found = services.catalog.names.of_partition(partition)
    leader = None if found is None else services.leader(*found)
    return None if leader is None or leader == services.fleet.own else services.fleet.peer(leader)


async def warm(services: Services, partitions: Sequence[str]) -> None:
    """Open partitions that this sidecar is about to lead, for as long as the one that asks for it waits."""
    for begin in range(0, len(partitions), AT_ONCE):
        opening = []
        for partition in partitions[begin : begin + AT_ONCE]:
            found = services.catalog.names.of_partition(partition)
            if found is not None:
                with contextlib.suppress(TopicMissing):
                    opening.append(services.partition(*found))
        await asyncio.gather(*(partition.opened() for partition in opening))
