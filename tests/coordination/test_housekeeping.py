"""Internal topics are compacted, and then Pulsar may take what is old."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context

import pytest

from kafka_sidecar.coordination.housekeeping import LOOK_SECONDS, SUBSCRIPTION, Housekeeping
from kafka_sidecar.internal_topics.compacted_topic import KeyedWrites
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.pulsar.errors import NotPermitted, Unavailable
from tests.model.cluster import Cluster, ClusterAdmin, ClusterClient, Obliging
from tests.model.internal_log import InternalLog
from tests.simulation.chance import Chance
from tests.simulation.conduct import DrawnCaller, DrawnConduct
from tests.simulation.plan import Bounds
from tests.support.virtual_time import in_virtual_time

NAMESPACE = "public/__kafka"
TOPIC = f"persistent://{NAMESPACE}/facts"
FINITE, FOR_EVER = (0, 0), (-1, -1)
# A broker tells who is elected within a second, and each compaction takes less than one.
LOOKS_SECONDS = 4 * LOOK_SECONDS


class World:
    """A cluster at which nothing goes wrong, with one topic of two partitions."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.conduct = DrawnConduct(self.loop, Chance(1), Bounds())
        self.cluster = Cluster(lambda _, partition: InternalLog(self.conduct, self.loop, partition), Obliging())
        self.cluster.create(TOPIC, 2)
        self.clock = Clock(lambda: int(self.loop.time() * 1000), self.loop.time)
        self._housekeepers: list[Housekeeping] = []

    @property
    def logs(self) -> list[InternalLog]:
        return self.cluster.topics[TOPIC]

    @property
    def retention(self) -> tuple[int, int] | None:
        return self.logs[0].retention

    def housekeeping(self, name: str, minutes: int = 0) -> Housekeeping:
        caller = DrawnCaller(self.conduct, name, copy_context())
        client, admin = ClusterClient(self.cluster, name, caller), ClusterAdmin(self.cluster, caller)
        ids = iter(range(10**6))
        one = Housekeeping(
            client, admin, NAMESPACE, [], [TOPIC], [], minutes, self.clock, lambda: f"{name}-{next(ids)}"
        )
        one.start()
        self._housekeepers.append(one)
        return one

    async def write(self, number: int, values: int) -> None:
        """Of three keys, and then the log goes on in a new ledger."""
        caller = DrawnCaller(self.conduct, "writer", copy_context())
        writes = KeyedWrites(TOPIC, self.clock)
        partition = f"{TOPIC}-partition-{number}"
        producer = writes.producer = await ClusterClient(self.cluster, "writer", caller).producer(
            partition, f"w{self.loop.time()}", writes
        )
        for value in range(values):
            await writes.send(b"k%d" % (value % 3), b"%d" % value)
        producer.close()
        self.logs[number].roll()

    async def close(self) -> None:
        for one in self._housekeepers:
            await one.close()


def played(play: Callable[[World], Awaitable[None]]) -> None:
    async def go() -> None:
        world = World()
        await play(world)
        await world.close()

    in_virtual_time(go())


def test_a_topic_gives_back_what_is_old_once_all_of_its_partitions_are_compacted() -> None:
    async def play(world: World) -> None:
        await world.write(0, 100)
        await world.write(1, 100)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE
        assert [len(log.present) for log in world.logs] == [0, 0]
        assert [len(log.compacted) for log in world.logs] == [3, 3]

    played(play)


def test_a_partition_that_nobody_has_written_is_compacted_too() -> None:
    """Else its cursor holds nothing, and what is written first goes before it is compacted."""

    async def play(world: World) -> None:
        await world.write(0, 10)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE
        await world.write(1, 10)
        assert len(world.logs[1].present) == 1 + 10, "behind the marker for which it was compacted"

    played(play)


def test_it_is_kept_for_ever_until_the_last_partition_is_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: World) -> None:
        await world.write(0, 10)
        await world.write(1, 10)
        monkeypatch.setattr(world.logs[1], "compact", lambda _: None)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention is None
        monkeypatch.undo()
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE

    played(play)


def test_it_is_kept_for_ever_while_a_broker_may_forget_what_is_compacted() -> None:
    async def play(world: World) -> None:
        await world.write(0, 10)
        world.cluster.version = "2.9.1"
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention is None
        world.cluster.version = "4.2.4"
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE
        world.cluster.version = "2.9.1"
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FOR_EVER

    played(play)


def test_a_cursor_that_has_lost_what_is_compacted_is_given_it_anew() -> None:
    """As after a message TTL. The broker serves what is compacted until it loads the topic anew."""

    async def play(world: World) -> None:
        await world.write(0, 10)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        world.logs[0].cursors_ledger = -1
        seen: list[tuple[int, int] | None] = []
        async with asyncio.timeout(LOOKS_SECONDS):
            while world.logs[0].cursors_ledger < 0:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await asyncio.sleep(0.5)
        seen.append(world.retention)
        await asyncio.sleep(LOOKS_SECONDS)
        assert [*seen, world.retention] == [FOR_EVER, FINITE]

    played(play)


@pytest.mark.parametrize("setting", ["ttlDurationDefaultInSeconds", "subscriptionExpirationTimeMinutes"])
def test_it_is_kept_for_ever_where_brokers_move_cursors(setting: str) -> None:
    async def play(world: World) -> None:
        await world.write(0, 10)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE
        world.cluster.settings[setting] = "60"
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert world.retention == FOR_EVER

    played(play)


def test_what_others_have_set_for_the_namespace_counts_only_once_it_is_compacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(world: World) -> None:
        async def of_others(*_: object) -> dict[str, object]:
            return {"retention_policies": {"retentionTimeInMinutes": 10_080, "retentionSizeInMB": -1}}

        monkeypatch.setattr(ClusterAdmin, "namespace_policies", of_others)
        await world.write(0, 10)
        world.housekeeping("a", minutes=1_440)
        await asyncio.sleep(5.0)
        assert world.retention == FOR_EVER
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == (1_440, -1)

    played(play)


def test_minus_one_keeps_all_also_where_it_was_something_else_before() -> None:
    async def play(world: World) -> None:
        await world.write(0, 10)
        first = world.housekeeping("a", minutes=60)
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == (60, -1)
        await first.close()
        world.housekeeping("b", minutes=-1)
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FOR_EVER

    played(play)


def test_nothing_changes_while_a_partition_can_not_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: World) -> None:
        asked = ClusterAdmin.compaction_stats

        async def fails_for_one(self: ClusterAdmin, partition: str) -> object:
            if partition.endswith("1"):
                raise Unavailable("no broker")
            return await asked(self, partition)

        monkeypatch.setattr(ClusterAdmin, "compaction_stats", fails_for_one)
        await world.write(0, 10)
        await world.write(1, 10)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention is None
        assert len(world.logs[0].compacted) == 3, "the other is compacted meanwhile"
        monkeypatch.undo()
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE

    played(play)


def test_brokers_without_policies_of_topics_keep_all(caplog: pytest.LogCaptureFixture) -> None:
    async def play(world: World) -> None:
        world.cluster.keeps_topic_policies = False
        await world.write(0, 10)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention is None

    played(play)
    said = [record for record in caplog.messages if "keeps all that was ever written to it" in record]
    assert len(said) == 1, "it is said once"


def test_one_of_two_sidecars_does_it_and_the_other_when_that_has_gone() -> None:
    async def play(world: World) -> None:
        await world.write(0, 10)
        first = world.housekeeping("a")
        world.housekeeping("b")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE
        await first.close()
        ledger = world.logs[0].compacted_ledger
        await world.write(0, 2_000)
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.logs[0].compacted_ledger > ledger

    played(play)


def test_what_a_broker_has_forgotten_is_not_made_final(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody has deleted the cursor, and the topic was loaded anew. An operator decides what becomes of the rest."""

    async def play(world: World) -> None:
        await world.write(0, 10)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        await world.write(0, 3)
        log = world.logs[0]
        log.compacted_ledger = log.cursors_ledger = -1
        log.horizon, log.compacted = None, []
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FOR_EVER
        assert log.compacted_ledger < 0
        log.compact(lambda: 0.1)
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE

    played(play)
    assert any("pulsar-admin topics compact" in message for message in caplog.messages)


@pytest.mark.parametrize("what", ["compaction_stats", "version_of_owner"])
def test_one_partition_that_is_not_held_is_reason_enough_while_another_can_not_be_asked(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(world: World) -> None:
        await world.write(0, 10)
        await world.write(1, 10)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        of = ClusterClient if what == "version_of_owner" else ClusterAdmin
        asked = getattr(of, what)

        async def fails_for_one(self: object, partition: str) -> object:
            if partition.endswith("1"):
                raise Unavailable("no broker")
            return await asked(self, partition)

        monkeypatch.setattr(of, what, fails_for_one)
        monkeypatch.setattr(world.logs[0], "compact", lambda _: None)
        world.logs[0].cursors_ledger = -1
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert world.retention == FOR_EVER
        monkeypatch.undo()

    played(play)


@pytest.mark.parametrize("what", ["namespace_policies", "broker_settings", "of_cursors"])
def test_it_is_kept_for_ever_where_the_role_may_not_ask_what_moves_cursors(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(world: World) -> None:
        async def refuses(*_: object) -> object:
            raise NotPermitted("403")

        await world.write(0, 10)
        world.housekeeping("a")
        await asyncio.sleep(LOOKS_SECONDS)
        assert world.retention == FINITE
        monkeypatch.setattr(ClusterAdmin, what, refuses)
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert world.retention == FOR_EVER
        monkeypatch.undo()

    played(play)


def test_a_candidate_that_its_broker_has_forgotten_stands_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two keep house for good."""

    async def play(world: World) -> None:
        await world.write(0, 10)
        monkeypatch.setattr(world.logs[0].conduct, "forgets_reader", lambda: True)
        first = world.housekeeping("a")
        await asyncio.sleep(5.0)
        monkeypatch.undo()
        world.housekeeping("b")
        await asyncio.sleep(LOOKS_SECONDS)
        candidates = world.logs[0].subscription_stats()[SUBSCRIPTION]["consumers"]
        assert len(candidates) == 2
        elected = [one for one in (first, world._housekeepers[1]) if one._keepers[0]._task.running]
        assert len(elected) == 1

    played(play)


def test_who_is_elected_does_not_compact_right_behind_another() -> None:
    async def play(world: World) -> None:
        await world.write(0, 2_000)
        world.logs[0].compact(lambda: 0.01)
        await asyncio.sleep(0.5)
        await world.write(0, 2_000)
        ledger = world.logs[0].compacted_ledger
        world.housekeeping("a")
        await asyncio.sleep(LOOK_SECONDS / 2)
        assert world.logs[0].compacted_ledger == ledger
        await asyncio.sleep(LOOK_SECONDS)
        assert world.logs[0].compacted_ledger > ledger

    played(play)
