"""Routing to coordinators: a key is coordinated by this sidecar, or by another that requests are passed on to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from itertools import chain
from typing import Any, Final

from kafka_sidecar.coordination.directory import Address, Directory
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.shards import Shards, shard_of
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.model.sidecar import Endpoint, Node, SidecarInfo, endpoint_of
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode

limited = RateLimitedLog(logging.getLogger(__name__))

# Pulsar elects within milliseconds; a broker that is under load, or has just died, takes seconds. As long as a question
# may take.
ELECTION_SECONDS: Final = 5.0
# A client waits for DeleteTopics while Pulsar is asked for the list of sidecars again and again.
LISTING_SECONDS: Final = 5.0
# Where Pulsar does not say who leads, the last leader is asked after so long: it refuses what it does not lead any
# more.
KNOWN_SECONDS: Final = 1.0
# Pulsar elects within milliseconds, so most elections are seen at the first look.
POLL_SECONDS: Final = 0.05
# After a question that failed: brokers need time, not questions.
AGAIN_SECONDS: Final = 0.25


class Leaders:
    """`candidate` returns when this sidecar is one; then the shards are known."""

    def __init__(
        self, own: SidecarInfo, shards: Shards[Any], directory: Directory, candidate: Callable[[], Awaitable[None]]
    ) -> None:
        self._own = own
        self._shards = shards
        self._directory = directory
        self._candidate = candidate
        self._is_leaving = False
        self._are_shared = False
        self._deciding: SingleFlight[int, SidecarInfo | ErrorCode | None] = SingleFlight()
        self._loop = asyncio.get_running_loop()

    async def find(self, key: str, own: Endpoint, is_external: bool) -> Node:
        """Where clients of a listener find the coordinator of a key; CoordinatorError while there is none."""
        leader = await self.leader(key)
        if leader is not None and self.is_reachable(leader, is_external):
            endpoint = endpoint_of(leader.external if is_external else leader.advertised)
            if endpoint is not None:
                return Node(leader.node_id, *endpoint)
        if self._is_leaving:
            raise CoordinatorError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE
            )  # another sidecar passes on, this one not for long
        return Node(self._own.node_id, *own)  # and passes on what is asked

    def is_advertised(self, leader: SidecarInfo) -> bool:
        """Whether clients get that sidecar's address: both advertise an address, and have node ids of their own."""
        return leader in self.fleet() and self._directory.is_settled(leader)

    def is_reachable(self, leader: SidecarInfo, is_external: bool) -> bool:
        """Whether clients of a listener find that sidecar, and ask it themselves."""
        return self.is_advertised(leader) and bool(leader.external if is_external else leader.advertised)

    def fleet(self) -> list[SidecarInfo]:
        """The other sidecars that clients may be sent to: topics have the same names there.

        Clients of one that advertises no address reach only that one.
        """
        others = (
            self._directory.advertised(Address(self._own.node_id, self._own.advertised)) if self._own.advertised else []
        )
        return [other for other in others if other.namespace in ("", self._own.namespace)]

    def hear_of(self, namespace: str) -> None:
        """A sidecar whose clients name topics of this namespace without one passes requests on to this one."""
        if namespace != self._own.namespace:
            self._are_shared = True

    @property
    def may_be_shared(self) -> bool:
        """Whether there is, or was, a sidecar of another namespace."""
        self._are_shared = self._are_shared or any(
            other.namespace not in ("", self._own.namespace) for other in self._all_others
        )
        return self._are_shared

    @property
    def are_shared(self) -> bool:
        """Whether sidecars of several namespaces share the groups, and all know what that means. Those of 0.2 do
        not.
        """
        return self.may_be_shared and self.all_are_new

    @property
    def all_are_new(self) -> bool:
        """Whether no other sidecar is of 0.2, as far as this one has seen."""
        return all(other.stored_format > 0 for other in self._all_others)

    @property
    def _all_others(self) -> Iterator[SidecarInfo]:
        return chain(self._directory.others, self._directory.visitors)

    async def know_whether_they_are_shared(self) -> bool:
        """The same, also of a sidecar that has just started: it first looks for the others."""
        if not self._directory.has_looked:
            await self.look_again()
        return self.are_shared

    def shared_nodes(self) -> Collection[int]:
        """Node ids that several sidecars have: Metadata names none of these."""
        return self._directory.shared_nodes(Address(self._own.node_id, self._own.advertised))

    def missing(self) -> Collection[str]:
        """The names of sidecars that have lost Pulsar."""
        return self._directory.missing

    async def look_again(self) -> bool:
        """At who stands for election; whether that could be seen."""
        try:
            await self._candidate()
        except CoordinatorError:
            return False
        return await self._directory.look_again()

    def leave(self, others_are_there: bool) -> None:
        """Name others from now on."""
        self._is_leaving = others_are_there
        self._directory.forget()

    async def known_leaders(self) -> list[SidecarInfo]:
        """The other sidecars that coordinate, whether this one has to do with it or not."""
        try:
            return [leader for leader in await self._directory.leaders() if leader.name != self._own.name]
        except TopicMissing:
            return []  # nothing was coordinated yet

    async def known_others(self) -> list[SidecarInfo]:
        """All other sidecars that Pulsar lists now, or has listed at the look before, whether they coordinate or not.

        Where Pulsar does not answer for a while, those of the look before alone. Raises PulsarError where Pulsar
        refuses to say, or has never answered.
        """
        until, before = self._loop.time() + LISTING_SECONDS, list(self._all_others)
        while True:
            try:
                await self._directory.look_now()
                break
            except PulsarError as error:  # a broker that has just started may call a topic missing that is there
                if isinstance(error, TopicMissing) and not self._directory.has_looked:
                    return []  # nothing was coordinated yet
                if not (error.retriable or isinstance(error, TopicMissing)):
                    raise
                if self._loop.time() >= until:
                    if not self._directory.has_looked:
                        raise
                    break
            await asyncio.sleep(AGAIN_SECONDS)
        return list({other.name: other for other in chain(before, self._all_others)}.values())

    def is_here(self, key: str) -> bool:
        """Whether the key is coordinated here, as far as this sidecar knows."""
        return bool(self._shards) and self._shards.of(key).term.phase is not Phase.WAITING

    def is_loading(self, key: str) -> bool:
        """Whether this sidecar reads what is stored of the key's shard before it coordinates it."""
        return bool(self._shards) and self._shards.of(key).term.phase is Phase.LOADING

    async def loaded(self, key: str, until: float | None) -> None:
        """Wait while the key's shard loads here, at most until then by the loop's clock; without a pause if it does not
        load.
        """
        if self.is_loading(key):
            await self._shards.of(key).term.loaded(until)

    async def leader(self, key: str) -> SidecarInfo | None:
        """The other sidecar that coordinates a key, None when it is this one; CoordinatorError while there is none."""
        await self._candidate()
        return await self._decided(shard_of(key, len(self._shards)))

    async def leader_of_shard(self, number: int) -> SidecarInfo | None:
        """The same of a shard."""
        await self._candidate()
        return await self._decided(number)

    async def all(self) -> list[SidecarInfo]:
        """The other sidecars that coordinate. Every shard has a leader by then; those here are loaded, if that is
        quick.
        """
        await self._candidate()
        found = await asyncio.gather(*(self._decided(number) for number in range(len(self._shards))))
        for _ in range(round(ELECTION_SECONDS / POLL_SECONDS)):
            if all(shard.term.phase is not Phase.LOADING for shard in self._shards):
                break
            await asyncio.sleep(POLL_SECONDS)
        return list({leader.name: leader for leader in found if leader is not None}.values())

    async def _decided(self, number: int) -> SidecarInfo | None:
        """The leader of a shard, None for this sidecar. An election takes a moment: all callers wait for it
        together.
        """
        if self._shards[number].term.phase is not Phase.WAITING:
            return None
        decided = await self._deciding.call(number, lambda: self._decide(number))
        if isinstance(decided, ErrorCode):
            raise CoordinatorError(decided)
        return decided

    async def _decide(self, number: int) -> SidecarInfo | ErrorCode | None:
        known = self._directory.last_known(number)
        if known is not None and known.name == self._own.name:
            known = None
        until = self._loop.time() + ELECTION_SECONDS
        while True:
            if self._shards[number].term.phase is not Phase.WAITING:
                return None
            leader = known
            try:
                async with asyncio.timeout_at(until if known is None else self._loop.time() + KNOWN_SECONDS):
                    leader = await self._directory.leader(number)
            except (PulsarError, TimeoutError) as error:
                limited.info(
                    "who coordinates %s can't be found out: %s",
                    self._shards[number].term.name,
                    str(error) or "no answer",
                )
            if leader is not None and leader.name != self._own.name:
                return leader
            if self._loop.time() >= until:
                if not self._own.coordinates:
                    name = self._shards[number].term.name
                    limited.warning(
                        "nobody coordinates %s: no sidecar with groups.coordinate stands for election", name
                    )
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
            await asyncio.sleep(POLL_SECONDS)

    async def close(self) -> None:
        await self._deciding.close()
