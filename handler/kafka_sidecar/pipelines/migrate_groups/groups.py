"""Committed offsets of the source's groups, set in the target: found through the mirror's runs, and proved by the
records themselves.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kafka_sidecar.errors import CommandFailed, ConfigError
from kafka_sidecar.kafka_client.client import TRANSIENT, KafkaClient, Refused, connected, until_it_succeeds
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.groups import Committed, GroupState, commit, committed, list_groups
from kafka_sidecar.kafka_client.topics import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    ClusterState,
    Partition,
    cluster_state,
    offsets,
)
from kafka_sidecar.partition.log.packed_offsets import PackedOffset, Undecided
from kafka_sidecar.pipelines.copying.delivery import Route, not_the_same
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.offset_runs import NotReached, Place, Translation
from kafka_sidecar.pipelines.copying.places import number_of_packed, shown
from kafka_sidecar.pipelines.copying.reading import SourceRecord, records
from kafka_sidecar.pipelines.copying.record import translations
from kafka_sidecar.pipelines.mirror.copying import CLIENT_ID

ASK_SECONDS: Final = 60.0
READS_AT_A_TIME: Final = 8
NOT_ALONE: Final = "another partition of the group can't be moved"
# Size of a Fetch for one record: a broker returns at least one batch, however large it is.
ONE_RECORD_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsOptions:
    name: MirrorName
    source: Cluster
    target: Cluster
    groups: tuple[str, ...]
    overwrite: bool = False
    unproved: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One partition of one group."""

    group: str
    topic: str
    partition: int
    committed: Committed  # what the group has committed in the source
    target_topic: str = ""
    place: Place | None = None  # where the group goes on in the target; None where that can't be known
    there: int | None = None  # the offset that the group has already committed in the target
    first: SourceRecord | None = None  # the first record that the group will read in the target, with its target offset
    problem: str = ""
    note: str = ""  # a remark that does not prevent the offset from being set
    is_proved: bool = False  # the first record was read in source and target, and is the same

    @property
    def is_to_be_set(self) -> bool:
        return self.place is not None and not self.problem and self.there != self.place.target


async def migrate(options: GroupsOptions) -> list[Step]:
    """Carry it out, or find out what would be done."""
    try:
        async with connected(options.source, CLIENT_ID) as source, connected(options.target, CLIENT_ID) as target:
            steps = await until_it_succeeds(lambda: _planned(options, source, target), ASK_SECONDS)
            return steps if options.dry_run else await _set(steps, target)
    except (Refused, *TRANSIENT) as error:
        raise CommandFailed(f"groups can't be moved: {str(error) or type(error).__name__}") from error


async def _planned(options: GroupsOptions, source: KafkaClient, target: KafkaClient) -> list[Step]:
    source_state, target_state = await cluster_state(source), await cluster_state(target)
    if options.name.runs_topic not in target_state.topics:
        raise CommandFailed(
            f"there is no topic {options.name.runs_topic} in the target: mirror {options.name.name} has not run"
        )
    copied = await translations(target, options.name.runs_topic)
    changed = _changed(options.name, copied, source_state, target_state)
    source_groups, target_groups = await list_groups(source), await list_groups(target)
    mirrored = {topic for (topic, _), one in copied.items() if one.latest is not None}
    steps: list[Step] = []
    for group in chosen_groups(options.groups, source_groups, options.name.group):
        there = await _committed(target, group)
        for (topic, index), one in sorted((await _committed(source, group)).items()):
            step = Step(group=group, topic=topic, partition=index, committed=one)
            step = translated(step, copied.get((topic, index)), topic in mirrored, there, options.overwrite)
            steps.append(replace(step, problem=step.problem or changed.get((topic, index), "")))
        refusal = _refusal(source_groups[group], target_groups.get(group))
        if refusal:
            steps = [
                replace(step, problem=step.problem or refusal) if step.group == group and step.target_topic else step
                for step in steps
            ]
    gate = asyncio.Semaphore(READS_AT_A_TIME)
    log = await _log(target, steps)

    async def proved(step: Step) -> Step:
        if step.place is None or step.problem:
            return step
        async with gate:
            return await _proved(step, source, target, log, options.unproved)

    return wholly(await asyncio.gather(*map(proved, steps)))


def _changed(
    mirror: MirrorName, translations: Mapping[Partition, Translation], source: ClusterState, target: ClusterState
) -> dict[Partition, str]:
    """Partitions whose runs are of other topics than those of now."""
    found = {}
    for (topic, index), one in translations.items():
        if one.latest is None:
            continue
        name = one.latest.target_topic
        now = Route(
            mirror=mirror,
            topic=topic,
            target_topic=name,
            partition=index,
            source_cluster=source.cluster_id,
            source_id=source.topics[topic].topic_id if topic in source.topics else "",
            target_id=target.topics[name].topic_id if name in target.topics else "",
        )
        fault = not_the_same(now.as_recorded(one.latest), now)
        if fault:
            found[topic, index] = fault
    return found


def wholly(steps: Iterable[Step]) -> list[Step]:
    """A group is moved wholly or not at all: half of it would begin where `auto.offset.reset` says."""
    found = list(steps)
    stuck = {step.group for step in found if step.problem}
    return [
        replace(step, problem=NOT_ALONE)
        if step.group in stuck and not step.problem and step.place is not None
        else step
        for step in found
    ]


def chosen_groups(patterns: Iterable[str], groups: Mapping[str, GroupState], mirrors_own: str) -> list[str]:
    """Of the source, by name, or else regular expression for whole names. The group of the mirror stays where it is."""
    found: set[str] = set()
    for pattern in patterns:
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                f"--group {pattern} is neither a group's name nor a regular expression: {error}"
            ) from error
        of_pattern = {pattern} if pattern in groups else {name for name in groups if wanted.fullmatch(name)}
        if not of_pattern - {mirrors_own}:
            raise ConfigError(
                f"--group {pattern}: no group of the source has this name, or matches it as a regular expression"
            )
        found |= of_pattern - {mirrors_own}
    return sorted(found)


def translated(
    step: Step,
    translation: Translation | None,
    is_topic_mirrored: bool,
    there: Mapping[Partition, Committed],
    overwrite: bool,
) -> Step:
    """Where the group goes on in the target. Pure."""
    if translation is None or translation.latest is None:
        if is_topic_mirrored:
            return replace(step, problem="the mirror has not begun with this partition of its topic: let it catch up")
        return replace(step, note="the mirror does not copy this topic")
    target_topic = translation.latest.target_topic
    before = there.get((target_topic, step.partition))
    step = replace(step, target_topic=target_topic, there=None if before is None else before.offset)
    try:
        step = replace(step, place=translation.place_of(number_of_packed(step.committed.offset, translation.runs)))
    except Undecided as error:
        packed = PackedOffset.of(step.committed.offset)
        text = (
            f"the offset is of Kafka-on-Pulsar before 2.8, {packed}: {error}; `kafka-sidecar groups translate` asks "
            "the whole log"
        )
        return replace(step, problem=text)
    except NotReached as error:
        return replace(
            step, problem=f"the mirror has copied up to {shown(error.next_source)} of the source: let it catch up"
        )
    assert step.place is not None
    if before is not None and before.offset != step.place.target and not overwrite:
        return replace(
            step,
            problem=f"the group has committed {before.offset} in the target already: say --overwrite to replace it",
        )
    return step


def _refusal(source: GroupState, target: GroupState | None) -> str:
    """Why a group can't be moved now; empty where it can."""
    if source.has_members:
        return f"the group has members in the source ({source.state}): stop them, or what they commit next is not moved"
    if target is not None and target.has_members:
        return f"the group has members in the target ({target.state}): stop them, its offsets are theirs to set"
    return ""


async def _committed(kafka: KafkaClient, group: str) -> dict[Partition, Committed]:
    return await until_it_succeeds(lambda: committed(kafka, group), ASK_SECONDS)


async def _log(target: KafkaClient, steps: Iterable[Step]) -> dict[Partition, tuple[int, int]]:
    """Where each partition of the target begins and ends."""
    wanted = {(step.target_topic, step.partition) for step in steps if step.place is not None}
    begins, ends = await offsets(target, wanted, EARLIEST), await offsets(target, wanted, LATEST)
    return {at: (begins[at], ends[at]) for at in wanted}


async def _proved(
    step: Step, source: KafkaClient, target: KafkaClient, log: Mapping[Partition, tuple[int, int]], unproved: bool
) -> Step:
    """Both sides' first record behind the offset, compared."""
    place = step.place
    assert place is not None
    begin, end = log[step.target_topic, step.partition]
    if place.target > end:
        return replace(
            step,
            problem=f"the target ends at {end}, before offset {place.target}: it was made again, or has lost records",
        )
    if place.target < begin:
        return _not_proved(
            step, f"the target has removed records that the group has not read: its log starts at {begin}", unproved
        )
    if place.first_source is None:
        return replace(step, note="at the end of what was copied")
    ours = await _first(target, step.target_topic, step.partition, place.target)
    step = replace(step, first=ours)
    if ours is None or ours.offset != place.target:
        return _not_proved(step, f"the target has removed the record at offset {place.target}", unproved)
    # An entry without an index: no Kafka client can read it in the source, but its target offset was recorded.
    if place.first_source < 0:
        return step
    theirs = await _first(source, step.topic, step.partition, place.first_source)
    if theirs is None or theirs.offset != place.first_source:
        return _not_proved(
            step, f"the source has removed the record at offset {place.first_source}: it can't be compared", unproved
        )
    if ours[1:] != theirs[1:]:
        return replace(step, problem=f"target offset {ours.offset} is not the record of source offset {theirs.offset}")
    return replace(step, is_proved=True)


def _not_proved(step: Step, why: str, unproved: bool) -> Step:
    if unproved:
        return replace(step, note=f"{why}; set all the same")
    return replace(step, problem=f"{why}. To set it all the same say --unproved")


async def _first(kafka: KafkaClient, topic: str, partition: int, offset: int) -> SourceRecord | None:
    at = (topic, partition)
    start = (await offsets(kafka, [at], EARLIEST))[at]
    end = (await offsets(kafka, [at], LATEST, READ_COMMITTED))[at]
    async for record in records(kafka, topic, partition, max(start, offset), end, ONE_RECORD_BYTES):
        return record
    return None


async def _set(steps: list[Step], target: KafkaClient) -> list[Step]:
    for group in sorted({step.group for step in steps if step.is_to_be_set}):
        wanted = {
            (step.target_topic, step.partition): Committed(step.place.target, step.committed.metadata)
            for step in steps
            if step.group == group and step.is_to_be_set and step.place is not None
        }

        async def try_it(group: str = group, wanted: Mapping[Partition, Committed] = wanted) -> dict[Partition, str]:
            return await commit(target, group, wanted)

        refused = await until_it_succeeds(try_it, ASK_SECONDS)
        steps = [
            replace(step, problem=f"the target refuses the offset: {refused[step.target_topic, step.partition]}")
            if step.group == group and (step.target_topic, step.partition) in refused
            else step
            for step in steps
        ]
    return steps


def result_of(options: GroupsOptions, steps: Iterable[Step]) -> dict[str, Any]:
    """For programs."""
    listed = [
        {
            "group": step.group,
            "topic": step.topic,
            "partition": step.partition,
            "source_offset": step.committed.offset,
            "target_topic": step.target_topic,
            "target_offset": None if step.place is None else step.place.target,
            "had": step.there,
            "set": step.is_to_be_set and not options.dry_run,
            "proved": step.is_proved,
            "note": step.note,
            "first_record": None
            if step.first is None
            else {"offset": step.first.offset, "timestamp": step.first.timestamp},
            "problem": step.problem,
        }
        for step in steps
    ]
    return {"pipeline": "migrate-groups", "name": options.name.name, "dry_run": options.dry_run, "offsets": listed}
