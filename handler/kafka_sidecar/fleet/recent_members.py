"""The members of the fleet of a moment ago, in a compacted internal topic.

    a member ──each half a minute──▶ __fleet_members ──▶ all members: `on_seen`

When a whole fleet is started again, the first sidecar that accepts clients is alone in the directory, and the others
come within seconds. A librdkafka that heard of that one alone would take what the others lead for gone (see
apis/common/nodes.py).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka_sidecar.fleet.member import Member
from kafka_sidecar.internal_topics.shared_map import MergeRule, SharedMap
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.loop.waiting import within
from kafka_sidecar.model.sidecar import Endpoint
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

PUT_SECONDS: Final = 30.0
# A sidecar that starts waits at most 2 s until the stored members are read.
LOAD_SECONDS: Final = 2.0
# The record of a member that has been away for more than 1 h is deleted.
KEPT_SECONDS: Final = 3_600.0


class Seen(NamedTuple):
    at_ms: int  # by the clock of that member
    member: Member


class _Seen(MergeRule[Seen]):
    def encode(self, value: Seen) -> bytes:
        return json.dumps([value.at_ms, *value.member]).encode()

    def decode(self, data: bytes) -> Seen:
        match json.loads(data):
            case [
                int(at_ms),
                int(node_id),
                str(host),
                int(port),
                str() | None as rack,
                [str(external), int(external_port)],
            ]:
                return Seen(at_ms, Member(node_id, host, port, rack, Endpoint(external, external_port)))
            case [int(at_ms), int(node_id), str(host), int(port), str() | None as rack, None]:
                return Seen(at_ms, Member(node_id, host, port, rack))
            case _:
                raise ValueError("it is no member")

    def supersedes(self, value: Seen, other: Seen) -> bool:
        """The last place of a node that was started again somewhere else."""
        return value.at_ms > other.at_ms


SEEN: Final = _Seen()


def topic_in(namespace: str) -> str:
    return f"persistent://{namespace}/__fleet_members"


class RecentMembers:
    def __init__(
        self,
        client: Client,
        admin: Admin,
        namespace: str,
        own: Member,
        topics_namespace: str,
        on_seen: Callable[[Member, float], None],
        clock: Clock,
        new_id: NewId,
    ) -> None:
        """`topics_namespace`: fleets that serve other namespaces may share the internal ones, and have node ids of
        their own. `on_seen` is called with each member, and how many seconds ago it was there.
        """
        self._own = own
        self._prefix = f"{topics_namespace} "
        self._on_seen = on_seen
        self._clock = clock
        self._stored = SharedMap(client, admin, topic_in(namespace), SEEN, clock, new_id, self._on_change)
        self._putting = SupervisedTask("recent_members", namespace, self._put_again_and_again)

    @property
    def topic(self) -> str:
        return self._stored.topic

    async def load(self) -> None:
        """Until `on_seen` has had what is stored, if that does not take long. It gets what comes later then."""
        self._stored.start()
        try:
            await within(LOAD_SECONDS, self._stored.all_now())
        except (PulsarError, TimeoutError) as error:
            log.info("the members of a moment ago can't be read: %s", str(error) or "no answer")

    def begin(self) -> None:
        """This sidecar is a member from now on."""
        self._putting.start()

    async def close(self) -> None:
        await self._putting.stopped()
        await self._stored.close()

    async def _put_again_and_again(self) -> None:
        while True:
            try:
                await within(PUT_SECONDS, self._put())
            except (PulsarError, TimeoutError) as error:
                log.info("that this sidecar is a member of the fleet can't be stored: %s", str(error) or "no answer")
            await asyncio.sleep(PUT_SECONDS)

    async def _put(self) -> None:
        now = self._clock.wall()
        await self._stored.put(f"{self._prefix}{self._own.node_id}", Seen(now, self._own))
        self._stored.forget(
            {key: seen for key, seen in self._stored.values.items() if now - seen.at_ms > KEPT_SECONDS * 1_000}
        )

    def _on_change(self, key: str, seen: Seen) -> None:
        if key.startswith(self._prefix) and seen.member.node_id != self._own.node_id:
            self._on_seen(seen.member, (self._clock.wall() - seen.at_ms) / 1_000)
