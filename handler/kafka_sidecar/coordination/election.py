"""The election of a shard's coordinator: the active consumer of a Failover subscription. Pulsar elects, and says so.

The consumers' metadata say where each sidecar is found, so that topic stats name the coordinator of
every shard to all that ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from kafka_sidecar.coordination.balance import claim_priority, newcomer_priority
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.lasting import Lasting
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.ports import Client

# Before standing again: a topic that moves is back within a second, and a broker that is away is not asked more than
# every 5 s.
FIRST_DELAY: Final = 0.2
MAX_DELAY: Final = 5.0
# A candidate that has joined is listed at the next look. A broker that closes a topic may have let one in that nobody
# will know.
FORGOTTEN_SECONDS: Final = 10.0
# The lists are looked at each 15 seconds, or each second. An answer may take half a minute.
PAUSE_SECONDS: Final = 50.0


class Elected(Protocol):
    """The shard's term, which the election begins and ends."""

    def elect(self) -> None: ...
    def depose(self, reason: str) -> None: ...


class Nobody(Elected):
    """Who stands only to be seen."""

    def elect(self) -> None: ...
    def depose(self, reason: str) -> None: ...


class Election(ConsumerEvents):
    """A candidate for one shard, for as long as it runs."""

    def __init__(
        self,
        client: Client,
        topic: str,
        subscription: str,
        name: str,
        metadata: dict[bytes, bytes],
        elected: Elected,
        wall_clock: Callable[[], int],
    ) -> None:
        self._client = client
        self._topic = topic
        self._subscription = subscription
        self._name = name
        self._priority = newcomer_priority(wall_clock())
        self._metadata = metadata
        self._elected = elected
        self._wall_clock = wall_clock  # milliseconds
        self._ended: asyncio.Future[PulsarError] | None = None
        self._has_joined = False
        self._is_missed = Lasting(FORGOTTEN_SECONDS, PAUSE_SECONDS)  # by the broker's lists of candidates
        self._task = SupervisedTask("candidate", topic, self._stand, backoff=Backoff(FIRST_DELAY, MAX_DELAY))
        self._task.start()

    async def _stand(self) -> None:
        """Until the broker ends it: a sidecar that stands no more leads no more."""
        ended = self._ended = asyncio.get_running_loop().create_future()
        try:
            candidate = await self._client.candidate(
                self._topic, self._subscription, self._name, self._priority, self, self._metadata
            )
            self._has_joined = True
            self._is_missed.deny()
            try:
                self._task.backoff.reset()
                raise await ended
            finally:
                self._has_joined = False
                candidate.close()
        except Exception as error:
            self._elected.depose(str(error))
            raise

    def claim(self) -> None:
        """Stand again, before all others: this sidecar is to lead the shard from now on."""
        self._priority = claim_priority(self._wall_clock())
        self.on_end(Unavailable("the shard is claimed"))

    def note_listed(self, is_listed: bool | None) -> None:
        """Whether the broker lists this candidate; None where it has not said so. One that it has forgotten would lead
        for good, while all others wait for another.
        """
        now = asyncio.get_running_loop().time()
        if is_listed or not self._has_joined:
            self._is_missed.deny()
        elif is_listed is not None:
            self._is_missed.say(now)
        if self._is_missed.is_believed(now):
            self.on_end(Unavailable("the broker has forgotten this candidate"))

    def close(self) -> None:
        """Stand no more: another is elected at once."""
        self._task.stop()
        self._elected.depose("this sidecar stops")

    # --- from the subscription

    def on_entry(self, entry: RawEntry) -> None:
        """Nothing is asked for: the log is read by the term, from its beginning."""

    def on_active(self, active: bool) -> None:
        if active:
            self._elected.elect()
        else:
            self._elected.depose("the election chose another")

    def on_end(self, reason: PulsarError) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)
