"""The fleet as this sidecar sees it: the nodes that Metadata names, and which of them leads what.

coordination/directory ──▶ pings, to each every second ──▶ liveness ──▶ View, a new one with each change
recent_members ──▶ members of a moment ago ───────────────────────────────▲
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass
from typing import Final, Protocol

from kafka_sidecar.control.v1.control_pb2 import PingRequest, PingResponse
from kafka_sidecar.fleet.leadership import Leadership
from kafka_sidecar.fleet.liveness import Liveness
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.peers import Peers, PeerTooOld, PeerUnavailable
from kafka_sidecar.fleet.phase import TRANSITIONS, FleetPhase
from kafka_sidecar.fleet.recent_nodes import RECENT_SECONDS, RecentNodes
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.loop.states import next_state
from kafka_sidecar.loop.supervised import every
from kafka_sidecar.model.sidecar import SidecarInfo, endpoint_of
from kafka_sidecar.telemetry import metrics

log = logging.getLogger(__name__)

PING_SECONDS: Final = 1.0
# A ping times out before the next one is sent.
ANSWER_SECONDS: Final = 0.9
# The directory is read again at most every 2 s because of a sidecar that is new or does not answer.
LOOK_SECONDS: Final = 2.0
# A sidecar that starts waits at most 30 s for the directory.
START_SECONDS: Final = 30.0
# In a large fleet the ping interval is 0.05 s per member: a ping costs a third of a millisecond on each side.
PING_SECONDS_A_MEMBER: Final = 0.05
# All sidecars see a change of leaders within 3 s. Only after that does a sidecar send clients on to the new leader.
SETTLED_SECONDS: Final = 3.0
# A sidecar that has started leads only after 12 s, if others lead. Clients that failed to connect to it while it was
# down wait up to 10 s before they reconnect (reconnect.backoff.max.ms of librdkafka), even if Metadata names it as the
# leader.
JOIN_SECONDS: Final = 12.0


class Candidates(Protocol):
    """The sidecars of the cluster, as Pulsar lists them."""

    def fleet(self) -> Collection[SidecarInfo]:
        """The others that advertise an address; none for a sidecar that advertises none itself."""
        ...

    def shared_nodes(self) -> Collection[int]:
        """Node ids that several have."""
        ...

    def missing(self) -> Collection[str]:
        """The names of those that have lost Pulsar."""
        ...

    async def look_again(self) -> bool:
        """Whether Pulsar could be asked."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """What is answered to a client is answered from one of these."""

    nodes: tuple[Member, ...]  # current members of the fleet, which Metadata lists as brokers
    recent: tuple[Member, ...]  # members seen within the last 75 s, which Metadata still lists as brokers
    leadership: Leadership  # leaders of partitions, chosen among the members that lead

    def has(self, node_id: int) -> bool:
        return any(member.node_id == node_id for member in (*self.nodes, *self.recent))


class Fleet:
    def __init__(
        self,
        own: Member,
        name: str,
        candidates: Candidates,
        peers: Peers,
        clock: Callable[[], float],
        on_returned: Callable[[int], None],
    ) -> None:
        """`on_returned`: a node is there again. Clients that got Metadata meanwhile do not know where it is."""
        self.own = own
        self.view = View((own,), (), Leadership([own]))
        self.version = 0  # incremented when the set of leading members changes
        self.awakenings = 0
        self._name = name
        self._candidates = candidates
        self._peers = peers
        self._on_returned = on_returned
        self._clock = clock
        self._liveness = Liveness()
        self._recent = RecentNodes()
        self._known: dict[str, SidecarInfo] = {}
        self._peers_of: dict[int, SidecarInfo] = {}
        self._pinging: dict[str, asyncio.Task[None]] = {}
        self._pinged_at = -math.inf
        # True if a sidecar may have joined or left since the directory was last read.
        self._directory_is_stale = False
        self._looked_at = -math.inf
        self._looking: SingleFlight[None, bool] = SingleFlight()
        self.phase = FleetPhase.STARTING
        self._has_lost_pulsar = False  # True if other sidecars report that Pulsar no longer lists this one
        # Loop time from which this sidecar leads if others lead; without others it leads at once.
        self._leads_from = -math.inf
        self._sends_away_at = math.inf
        self._has_woken = True
        self._waking: asyncio.Task[None] | None = None
        self._waiting: dict[Callable[[], None], None] = {}  # callbacks of waiting requests, in order of arrival
        self._on_change: Callable[[], None] = lambda: None
        self._task = every(PING_SECONDS, "fleet", self._beat)

    # --- for requests

    @property
    def is_alone(self) -> bool:
        return self.view.leadership.members == (self.own,)

    @property
    def leads_nothing(self) -> bool:
        """Others lead, and it leaves or has just come."""
        return self.own not in self.view.leadership.members

    def leads(self, member: Member) -> bool:
        """Whether clients find it leading now: this sidecar does not before it serves, though nobody else leads."""
        return member in self.view.leadership.members and (member != self.own or self.phase is not FleetPhase.STARTING)

    @property
    def is_leaving(self) -> bool:
        """It leaves, and others lead."""
        return self.phase is FleetPhase.LEAVING and self.leads_nothing

    def sends_away(self, now: float) -> bool:
        """Whether clients are sent to the leaders by now; until then any sidecar serves what it is asked."""
        return now >= self._sends_away_at

    def known(self, member: Member) -> SidecarInfo | None:
        """What another member tells of itself."""
        return self._peers_of.get(member.node_id)

    def peer(self, member: Member) -> SidecarInfo | None:
        """Where a member is reached by other sidecars."""
        peer = self.known(member)
        return peer if peer is not None and peer.control else None

    def when_sending_away(self, wake: Callable[[], None]) -> None:
        """Who waits for data of a partition would wait on where it is not led any more."""
        self._waiting[wake] = None

    def forget(self, wake: Callable[[], None]) -> None:
        self._waiting.pop(wake, None)

    def was_there(self, member: Member, seconds_ago: float) -> None:
        """As it has stored itself. It may be about to come back."""
        if abs(seconds_ago) >= RECENT_SECONDS:
            self._recent.tell([member.node_id])
        else:
            # The clock of the other sidecar may be ahead.
            self._recent.see(member, self._clock() - max(0.0, seconds_ago))
            self._update()

    # --- coming and going

    async def start(self, on_change: Callable[[], None]) -> None:
        """Return when the others are known. `on_change` is called with later views."""
        self._leads_from = math.inf
        until = self._clock() + START_SECONDS
        while not await self._candidates.look_again():
            if self._clock() >= until:
                log.warning("the other sidecars can't be looked for: Metadata names this one alone until they can")
                break
            await asyncio.sleep(PING_SECONDS)
        self._introduce()
        await self._ping_all()
        self._on_change = on_change
        self._task.start()

    async def serve(self) -> None:
        """Clients are served from now on."""
        self._become(FleetPhase.SERVING)
        self._leads_from = self._clock() + JOIN_SECONDS
        self._update()
        await self._ping_all()

    async def leave(self) -> None:
        """Lead nothing any more, and tell all others: they lead what this one has led."""
        self._become(FleetPhase.LEAVING)
        self._sends_away_at = math.inf
        await self._ping_all()
        self._update()

    def _become(self, phase: FleetPhase) -> None:
        self.phase = next_state(TRANSITIONS, self.phase, phase)

    def send_away(self) -> None:
        """Now, since the others are ready for what this one has led."""
        self._sends_away_at = self._clock()
        self._wake()

    async def close(self) -> None:
        await self._task.stopped()
        await self._looking.close()
        if self._waking is not None:
            self._waking.cancel()
        for task in list(self._pinging.values()):
            task.cancel()
        await asyncio.gather(*self._pinging.values(), return_exceptions=True)

    # --- pings

    def on_ping(self, request: PingRequest) -> PingResponse:
        """Another sidecar is there."""
        if request.sender in self._known:
            self._liveness.heard(request.sender, serves=request.serves)
            self._update()
        else:
            self._directory_is_stale = True  # the sender is a new sidecar
        missing = self._known.keys() & self._candidates.missing()
        return PingResponse(serves=self._says_that_it_leads, silent=self._liveness.silent, missing=missing)

    @property
    def _says_that_it_leads(self) -> bool:
        return self.phase is FleetPhase.SERVING and not self.leads_nothing

    async def _beat(self) -> None:
        now = self._clock()
        if self._directory_is_stale and now - self._looked_at >= LOOK_SECONDS:
            self._directory_is_stale, self._looked_at = False, now
            self._looking.begin(None, self._candidates.look_again)
        if now - self._pinged_at >= max(PING_SECONDS, PING_SECONDS_A_MEMBER * len(self._known)) * 0.9:
            self._directory_is_stale = self._directory_is_stale or bool(self._liveness.silent)
            self._pinged_at = now
            self._introduce()
            for other in self._known.values():
                self._ping_soon(other)
        if not self._has_woken and self.sends_away(now):
            self._wake()

    def _wake(self) -> None:
        """All that wait ask again, and nothing that was found out for a request before is good any more."""
        self._has_woken = True
        self.awakenings += 1
        waiting, self._waiting = self._waiting, {}
        self._waking = asyncio.create_task(_wake_all(waiting))

    def _introduce(self) -> None:
        """Those of the directory. One that is not listed any more is known for as long as it answers."""
        listed = {other.name: other for other in self._candidates.fleet()}
        self._known.update(listed)
        self._liveness.listed(listed, [name for name, other in listed.items() if not other.control])
        self._known = {name: other for name, other in self._known.items() if self._liveness.is_advertised(name)}
        self._update()

    def _ping_soon(self, other: SidecarInfo) -> asyncio.Task[None] | None:
        if not other.control:
            return None
        if other.name not in self._pinging:
            task = self._pinging[other.name] = asyncio.create_task(self._ping(other))
            task.add_done_callback(lambda _: self._pinging.pop(other.name, None))
        return self._pinging[other.name]

    async def _ping_all(self) -> None:
        """With what is so now: an earlier ping is waited for first."""
        await asyncio.gather(*self._pinging.values())
        tasks = [task for other in self._known.values() if (task := self._ping_soon(other)) is not None]
        await asyncio.gather(*tasks)

    async def _ping(self, other: SidecarInfo) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await self._peers.ping(other.control, other.name, self._name, serves=self._says_that_it_leads)
        except PeerTooOld:
            self._liveness.answered(other.name, serves=True)
        except (PeerUnavailable, TimeoutError):
            self._liveness.unanswered(other.name)
        else:
            self._liveness.answered(other.name, serves=answer.serves, silent=answer.silent, missing=answer.missing)
        self._update()

    # --- the view

    def _update(self) -> None:
        self._peers_of = self._others_by_node()
        missing = self._candidates.missing()
        leading = [
            _member(other)
            for other in self._peers_of.values()
            if self._liveness.leads(other.name) and other.name not in missing
        ]
        if not leading and self.phase is FleetPhase.SERVING:
            self._leads_from = -math.inf  # a sidecar that leads alone continues to lead when others join
        self._look_at_own_state()
        is_leaving = self.phase is FleetPhase.LEAVING
        if not leading or (not is_leaving and not self._has_lost_pulsar and self._clock() >= self._leads_from):
            leading.append(self.own)
        leadership = Leadership(leading)
        metrics.FLEET_MEMBERS.set(len(leading))
        is_led_as_before = leadership.members == self.view.leadership.members
        self._look_at_nodes(self.view.leadership if is_led_as_before else leadership)
        if is_led_as_before:
            return
        self.version += 1
        if not is_leaving:
            self._sends_away_at, self._has_woken = self._clock() + SETTLED_SECONDS, False
        log.info(
            "partitions are led by %s",
            ", ".join(f"{one.node_id} at {one.host}:{one.port}" for one in leadership.members),
        )
        self._on_change()

    def _look_at_nodes(self, leadership: Leadership) -> None:
        before, now = self.view, self._clock()
        nodes = tuple(sorted([self.own, *map(_member, self._peers_of.values())]))
        node_ids = {member.node_id for member in nodes}
        for member in before.nodes:
            if member.node_id not in node_ids:
                self._recent.see(member, now)
        recent = self._recent_but(node_ids, now)
        if (nodes, recent, leadership) != (before.nodes, before.recent, before.leadership):
            self.view = View(nodes, recent, leadership)
            new = [member.node_id for member in (*nodes, *recent) if not before.has(member.node_id)]
            for node_id in self._recent.were_advertised(new):
                self._on_returned(node_id)
            self._recent.tell(new)

    def _recent_but(self, node_ids: Set[int], now: float) -> tuple[Member, ...]:
        """Behind one address for all there are none to tell apart."""
        recent = [one for one in self._recent.at(now) if one.node_id not in node_ids and one[1:3] != self.own[1:3]]
        shared = self._candidates.shared_nodes() if recent else ()
        return tuple(sorted(one for one in recent if one.node_id not in shared))

    def _look_at_own_state(self) -> None:
        """Others know it from Pulsar. That this one does not reach Pulsar may be a fault of Pulsar's, which all of them
        have.
        """
        has_lost = self._liveness.is_called_missing(self._name)
        if has_lost != self._has_lost_pulsar:
            self._has_lost_pulsar = has_lost
            log.warning(
                "Pulsar lists this sidecar no more: others lead" if has_lost else "Pulsar lists this sidecar again"
            )

    def _others_by_node(self) -> dict[int, SidecarInfo]:
        """One that was started again may be known by its old name too. Behind one address for all there are none to
        tell apart.
        """
        others = sorted(self._known.values(), key=lambda other: self._liveness.leads(other.name))
        return {other.node_id: other for other in others if _member(other)[1:3] != self.own[1:3]}


async def _wake_all(waiting: Iterable[Callable[[], None]]) -> None:
    pace = Pace()
    for wake in waiting:
        wake()
        await pace.maybe_yield()


def _member(other: SidecarInfo) -> Member:
    endpoint = endpoint_of(other.advertised)
    assert endpoint is not None, "the directory lists no other"
    return Member(other.node_id, *endpoint, other.rack or None, endpoint_of(other.external))
