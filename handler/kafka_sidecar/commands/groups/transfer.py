"""`kafka-sidecar groups import` and `export`: a group's offsets set from Pulsar subscriptions of its name, or the other
way.

The Kafka side is a running sidecar, asked as any client asks it, so the group's coordinator decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from aiokafka.errors import KafkaError

from kafka_sidecar.config import Config
from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.committed import GroupHasMembers, commit, committed_offsets
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import WRITER_PREFIX, new_id
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.log.topic_logs import TopicLogs, opened
from kafka_sidecar.partition.partition import PartitionLimits
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing
from kafka_sidecar.subscriptions.mirror import Mirror, PulsarTopics, Subscription
from kafka_sidecar.topics.catalog import Catalog
from kafka_sidecar.topics.names import InvalidTopicName, TopicNames

IMPORT: Final = "import"
EXPORT: Final = "export"


class Step(NamedTuple):
    """One partition, and where both sides stand on it; None for a side that has nothing."""

    topic: str
    partition: int
    committed: int | None
    subscribed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOptions:
    direction: str
    group: str
    topics: tuple[str, ...]  # empty for all of the namespace, or all that the group has committed
    bootstrap: str
    dry_run: bool


async def transfer(config: Config, wanted: TransferOptions, say: Callable[[str], None]) -> int:
    """Carry it out, or say what would be done; the exit code."""
    try:
        async with opened(config) as logs:
            return await _transfer(logs, wanted, say)
    except (KafkaError, OSError) as error:
        raise CommandFailed(f"the sidecar at {wanted.bootstrap} can't be asked: {error}") from error
    except (PulsarError, InvalidTopicName) as error:
        raise CommandFailed(str(error)) from error


async def _transfer(logs: TopicLogs, wanted: TransferOptions, say: Callable[[str], None]) -> int:
    writer = WRITER_PREFIX + new_id()
    partitions = PartitionTable(logs.log, writer, 1, PartitionLimits(replay_entries=1), ProducerMemory(), SYSTEM_CLOCK)
    mirror = Mirror(wanted.group, logs.admin, PulsarTopics(logs, writer, partitions))
    try:
        committed = await committed_offsets(wanted.bootstrap, wanted.group)
        steps = await _steps(wanted, logs.catalog, mirror, committed)
        _show(wanted, steps, say)
        if not steps:
            return 1
        steps = [step for step in steps if step.committed != step.subscribed]
        if not wanted.dry_run:
            await _carry_out(wanted, logs.catalog.names, mirror, steps)
            say(f"{len(steps)} partitions set")
    finally:
        await partitions.close()
    return 0


async def _steps(
    wanted: TransferOptions, catalog: Catalog, mirror: Mirror, committed: dict[tuple[str, int], int]
) -> list[Step]:
    names = catalog.names
    topics = list(dict.fromkeys(names.canonical(topic) for topic in wanted.topics))
    if not topics and wanted.direction == EXPORT:
        topics = sorted({topic for topic, _ in committed})
    elif not topics:
        topics = sorted(catalog.names.kafka(name) for name in await catalog.list_names() if not name.internal)
    wanted_partitions: list[tuple[str, int, str]] = []
    for topic in topics:
        name = names.parse(topic)
        try:
            count = (await catalog.find(name)).partitions
        except TopicMissing as error:
            raise CommandFailed(f"there is no topic {topic}") from error
        wanted_partitions += [(topic, index, name.partition(index)) for index in range(count)]
    gate = asyncio.Semaphore(16)

    async def look(topic: str, index: int, partition: str) -> Step:
        async with gate:
            try:
                subscribed = await mirror.offset(wanted.group, partition)
            except PulsarError as error:
                raise CommandFailed(
                    f"partition {index} of topic {topic} can't be read: {error}. Mend it, or name the other topics "
                    "with --topic"
                ) from error
            return Step(topic, index, committed.get((topic, index)), subscribed)

    steps = await asyncio.gather(*(look(*one) for one in wanted_partitions))
    return [step for step in steps if _source(wanted, step) is not None]


def _source(wanted: TransferOptions, step: Step) -> int | None:
    return step.subscribed if wanted.direction == IMPORT else step.committed


def _show(wanted: TransferOptions, steps: list[Step], say: Callable[[str], None]) -> None:
    if not steps:
        what = "a Pulsar subscription of this name" if wanted.direction == IMPORT else "a committed offset"
        say(f"Nothing to {wanted.direction}: no partition has {what}.")
        return
    wide = max(len("TOPIC"), *(len(step.topic) for step in steps))
    target = "COMMITTED" if wanted.direction == IMPORT else "SUBSCRIPTION"
    say(f"{'TOPIC':{wide}}  PARTITION  {'COMMITTED':>12}  {'SUBSCRIPTION':>12}  NEW {target}")
    for step in steps:
        shown = ["-" if one is None else str(one) for one in (step.committed, step.subscribed)]
        say(f"{step.topic:{wide}}  {step.partition:>9}  {shown[0]:>12}  {shown[1]:>12}  {_change(wanted, step)}")
    if wanted.dry_run:
        say("Nothing was changed: this was a dry run.")


def _change(wanted: TransferOptions, step: Step) -> str:
    before, after = (
        (step.committed, step.subscribed) if wanted.direction == IMPORT else (step.subscribed, step.committed)
    )
    if before == after:
        return "as it is"
    assert after is not None
    return (
        f"{after}, back by {before - after}: records come again"
        if before is not None and after < before
        else str(after)
    )


async def _carry_out(wanted: TransferOptions, names: TopicNames, mirror: Mirror, steps: list[Step]) -> None:
    if wanted.direction == EXPORT:
        for step in steps:
            assert step.committed is not None
            await mirror.move(
                Subscription(wanted.group, names.parse(step.topic).partition(step.partition)), step.committed
            )
        return
    offsets = {(step.topic, step.partition): step.subscribed for step in steps if step.subscribed is not None}
    try:
        await commit(wanted.bootstrap, wanted.group, offsets)
    except GroupHasMembers as error:
        raise CommandFailed(str(error)) from error
