"""Committed offsets of the source's groups, set in the target: found through the mirror's runs, and proved by the records themselves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from handler.errors import ConfigError, SidecarError
from handler.pipelines.kafka.client import TRANSIENT, KafkaClient, Refused, connected, until_it_succeeds
from handler.pipelines.kafka.cluster import Cluster
from handler.pipelines.kafka.groups import Committed, GroupState, commit, committed, list_groups
from handler.pipelines.kafka.reading import SourceRecord, records
from handler.pipelines.kafka.topics import EARLIEST, LATEST, READ_COMMITTED, Partition, cluster_state, offsets
from handler.pipelines.mirror.copying import CLIENT_ID
from handler.pipelines.mirror.names import MirrorName
from handler.pipelines.mirror.offset_runs import Copied, NotReached, Place, Translation, decode, decode_key

ASK_SECONDS: Final = 60.0
READS_AT_A_TIME: Final = 8
_OF_MIRRORS: Final = "mirror-"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsOptions:
    name: MirrorName
    source: Cluster
    target: Cluster
    groups: tuple[str, ...]
    overwrite: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One partition of one group."""

    group: str
    topic: str
    partition: int
    committed: Committed  # in the source
    target_topic: str = ""
    place: Place | None = None  # None where nobody can tell
    there: int | None = None  # what the target has for the group already
    first: SourceRecord | None = None  # the record that the group reads first in the target; its offset there
    problem: str = ""
    is_proved: bool = False

    @property
    def is_to_be_set(self) -> bool:
        return self.place is not None and not self.problem and self.there != self.place.target


class CanNotMigrate(SidecarError):
    """One sentence for whoever typed the command."""


async def migrate(options: GroupsOptions) -> list[Step]:
    """Carry it out, or find out what would be done."""
    try:
        async with connected(options.source, CLIENT_ID) as source, connected(options.target, CLIENT_ID) as target:
            steps = await _planned(options, source, target)
            return steps if options.dry_run else await _set(steps, target)
    except (Refused, *TRANSIENT) as error:
        raise CanNotMigrate(f"groups can't be moved: {str(error) or type(error).__name__}") from error


async def _planned(options: GroupsOptions, source: KafkaClient, target: KafkaClient) -> list[Step]:
    if options.name.runs_topic not in (await cluster_state(target)).topics:
        raise CanNotMigrate(f"there is no topic {options.name.runs_topic} in the target: mirror {options.name.name} has not run")
    translations = await _translations(target, options.name.runs_topic)
    source_groups, target_groups = await list_groups(source), await list_groups(target)
    steps: list[Step] = []
    for group in chosen_groups(options.groups, source_groups):
        there = await _committed(target, group)
        for (topic, index), one in sorted((await _committed(source, group)).items()):
            step = Step(group=group, topic=topic, partition=index, committed=one)
            steps.append(translated(step, translations.get((topic, index)), there, options.overwrite))
        refusal = _refusal(source_groups[group], target_groups.get(group))
        if refusal:
            steps = [replace(step, problem=step.problem or refusal) if step.group == group else step for step in steps]
    gate = asyncio.Semaphore(READS_AT_A_TIME)
    starts = await _starts(target, steps)

    async def proved(step: Step) -> Step:
        if step.place is None:
            return step
        async with gate:
            return await _proved(step, source, target, starts)

    return list(await asyncio.gather(*map(proved, steps)))


def chosen_groups(patterns: Iterable[str], groups: Mapping[str, GroupState]) -> list[str]:
    """Of the source, by name or regular expression; those of mirrors stay where they are."""
    found: set[str] = set()
    for pattern in patterns:
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"--group {pattern} is neither a group's name nor a regular expression: {error}") from error
        of_pattern = {name for name in groups if not name.startswith(_OF_MIRRORS) and (name == pattern or wanted.fullmatch(name))}
        if not of_pattern:
            raise ConfigError(f"--group {pattern}: no group of the source has this name, or matches it as a regular expression")
        found |= of_pattern
    return sorted(found)


def translated(step: Step, translation: Translation | None, there: Mapping[Partition, Committed], overwrite: bool) -> Step:
    """Where the group goes on in the target. Pure."""
    if translation is None or not translation.has_any:
        return replace(step, problem="the mirror does not copy this partition")
    before = there.get((translation.target_topic, step.partition))
    step = replace(step, target_topic=translation.target_topic, there=None if before is None else before.offset)
    try:
        step = replace(step, place=translation.place_of(step.committed.offset))
    except NotReached as error:
        return replace(step, problem=f"{error}: let it catch up")
    assert step.place is not None
    if before is not None and before.offset != step.place.target and not overwrite:
        return replace(step, problem=f"the group has committed {before.offset} in the target already: say --overwrite to replace it")
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


async def _translations(target: KafkaClient, topic: str) -> dict[Partition, Translation]:
    at = (topic, 0)
    begin, end = (await offsets(target, [at], EARLIEST))[at], (await offsets(target, [at], LATEST, READ_COMMITTED))[at]
    found: dict[Partition, list[Copied]] = {}
    async for record in records(target, topic, 0, begin, end):
        found.setdefault(decode_key(record.key or b""), []).append(decode(record.value or b""))
    return {partition: Translation(copied) for partition, copied in found.items()}


async def _starts(target: KafkaClient, steps: Iterable[Step]) -> dict[Partition, int]:
    return await offsets(target, {(step.target_topic, step.partition) for step in steps if step.place is not None}, EARLIEST)


async def _proved(step: Step, source: KafkaClient, target: KafkaClient, starts: Mapping[Partition, int]) -> Step:
    """Both sides' first record behind the offset, compared."""
    assert step.place is not None
    start = starts[step.target_topic, step.partition]
    if step.place.target < start:
        return replace(step, problem=f"the target has removed what the group has not read: its log starts at {start}")
    if step.place.first_source is None:
        return replace(step, is_proved=True)  # the end of what was copied: whatever comes is new
    theirs = await _first(source, step.topic, step.partition, step.place.first_source)
    ours = await _first(target, step.target_topic, step.partition, step.place.target)
    if ours is None:
        return replace(step, problem=f"the target has no record at offset {step.place.target}, or behind it")
    if theirs is None or theirs.offset != step.place.first_source:
        return replace(step, first=ours, problem="the source has removed the record: what the group reads first can't be compared")
    if ours.offset != step.place.target or ours[1:] != theirs[1:]:
        return replace(step, first=ours, problem=f"target offset {ours.offset} is not the record of source offset {theirs.offset}")
    return replace(step, first=ours, is_proved=True)


async def _first(kafka: KafkaClient, topic: str, partition: int, offset: int) -> SourceRecord | None:
    at = (topic, partition)
    start = (await offsets(kafka, [at], EARLIEST))[at]
    end = (await offsets(kafka, [at], LATEST, READ_COMMITTED))[at]
    async for record in records(kafka, topic, partition, max(start, offset), end):
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
            "group": step.group, "topic": step.topic, "partition": step.partition, "source_offset": step.committed.offset,
            "target_topic": step.target_topic, "target_offset": None if step.place is None else step.place.target,
            "had": step.there, "set": step.is_to_be_set and not options.dry_run, "proved": step.is_proved,
            "first_record": None if step.first is None else {"offset": step.first.offset, "timestamp": step.first.timestamp},
            "problem": step.problem,
        }
        for step in steps
    ]  # fmt: skip
    return {"pipeline": "migrate-groups", "name": options.name.name, "dry_run": options.dry_run, "offsets": listed}
