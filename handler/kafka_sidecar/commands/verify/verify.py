"""The walk through the logs: which, how, and how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, TextIO

from kafka_sidecar.commands.verify import report
from kafka_sidecar.commands.verify.audit import Audit, PartitionReport
from kafka_sidecar.config import Config
from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.internal_topics.log_starts import stored_starts
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.topic_logs import opened
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing
from kafka_sidecar.pulsar.raw_entries import raw_entries_from
from kafka_sidecar.topics.catalog import Catalog
from kafka_sidecar.topics.names import InvalidTopicName

NAME: Final = "verify"
# Entries on their way at a time. A larger one is 5 MiB.
PERMITS: Final = 100
SHOW_SECONDS: Final = 0.2
WIDTH: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    topics: tuple[str, ...]
    namespace: str  # for all its topics; empty for none
    partition: int | None
    json: bool


async def verify(config: Config, wanted: VerifyOptions) -> int:
    """1 where something is wrong, 0 where not."""
    config = replace(config, kafka=replace(config.kafka, listed_namespaces=wanted.namespace))
    try:
        async with opened(config) as logs:
            partitions, reports = await _partitions(logs.catalog, wanted)
            moved = await stored_starts(logs.client, logs.admin, config.groups.namespace)
            if not wanted.json:
                print("".join(f"{line}\n" for one in reports for line in report.lines(one)), end="", flush=True)
            for number, partition in enumerate(partitions):
                progress = Progress(sys.stderr, f"{number + 1}/{len(partitions)} {partition}", time.monotonic)
                reports.append(await audited(logs.log(partition, NAME), partition, moved.get(partition), progress))
                if not wanted.json:
                    print("\n".join(report.lines(reports[-1])), flush=True)
    except (PulsarError, InvalidTopicName) as error:
        raise CommandFailed(str(error)) from error
    print(report.as_json(reports) if wanted.json else report.summary(reports))
    return 1 if any(one.faults for one in reports) else 0


async def _partitions(catalog: Catalog, wanted: VerifyOptions) -> tuple[list[str], list[PartitionReport]]:
    """Partitions in Pulsar's words; and of topics of the namespace that can't be described, why."""
    topics = [await catalog.find(catalog.names.parse(topic)) for topic in dict.fromkeys(wanted.topics)]
    undescribed = []
    for name in await catalog.list_names() if wanted.namespace else ():
        if f"{name.tenant}/{name.namespace}" == wanted.namespace and not name.internal:
            try:
                topics.append(await catalog.find(name))
            except TopicMissing:  # it has gone since
                continue
            except PulsarError as error:
                undescribed.append(Audit(name.pulsar, LogStats(()), None).unread(str(error)))
    partitions: list[str] = []
    for topic in topics:
        if wanted.partition is None:
            partitions += [topic.name.partition(index) for index in range(topic.partitions)]
        elif wanted.partition < topic.partitions:
            partitions.append(topic.name.partition(wanted.partition))
    if not partitions and not undescribed:
        raise CommandFailed("there is no such partition: name a topic, or a namespace that has topics")
    return list(dict.fromkeys(partitions)), undescribed


async def audited(log: EntryLog, name: str, moved: MovedStart | None, progress: Progress) -> PartitionReport:
    """The whole log as it is now."""
    audit = Audit(name, LogStats(()), moved)
    try:
        stats = await log.stats()
        audit = Audit(name, stats, moved)
        last = None if stats.last is None else await log.last_readable(stats.last, BEFORE_ALL)
        progress.total = sum(ledger.entries for ledger in stats.ledgers)
        if last is not None:
            await _walk(log, last, audit, progress)
        return audit.end(await log.index_property())
    except PulsarError as error:  # the others are looked at all the same
        return audit.unread(str(error))
    finally:
        progress.clear()


async def _walk(log: EntryLog, last: Position, audit: Audit, progress: Progress) -> None:
    async with aclosing(raw_entries_from(log, None, PERMITS)) as entries:
        async for entry in entries:
            if entry.position > last:
                break
            audit.take(entry)
            progress.show(audit.report)
            if entry.position == last:
                break


class Progress:
    """A line on a terminal; nothing where there is none."""

    def __init__(self, out: TextIO, name: str, clock: Callable[[], float]) -> None:
        self.total = 0
        self._out = out
        self._name = name
        self._clock = clock
        self._begun = clock()
        self._shown_at = self._begun
        self._is_on = out.isatty()

    def show(self, so_far: PartitionReport) -> None:
        if not self._is_on or so_far.entries % 64:
            return
        now = self._clock()
        if now - self._shown_at < SHOW_SECONDS:
            return
        self._shown_at = now
        share = min(1.0, so_far.entries / max(1, self.total))
        bar = ("#" * int(share * WIDTH)).ljust(WIDTH, ".")
        speed = report.megabytes(int(so_far.bytes / (now - self._begun)))
        faults = f" {so_far.faults} faults" if so_far.faults else ""
        self._out.write(f"\r\x1b[K[{bar}] {share:4.0%} {speed}/s{faults} {self._name}")
        self._out.flush()

    def clear(self) -> None:
        if self._is_on:
            self._out.write("\r\x1b[K")
            self._out.flush()
