"""Where a mirror has put each record, for a comparison with its copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kafka_sidecar.kafka_client.client import KafkaClient, asked
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import Partition, cluster_state
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.offset_runs import Translation
from kafka_sidecar.pipelines.copying.record import translations

CLIENT_ID: Final = "kafka-sidecar-audit"


async def copied_by(target: Cluster, mirror: MirrorName) -> dict[Partition, Translation]:
    """Empty where it has not run."""

    async def read(kafka: KafkaClient) -> dict[Partition, Translation]:
        if mirror.runs_topic not in (await cluster_state(kafka)).topics:
            return {}
        return await translations(kafka, mirror.runs_topic)

    return await asked(target, CLIENT_ID, read)


def run_rows(copied: Mapping[Partition, Translation]) -> Iterator[tuple[object, ...]]:
    """In the schema `measure.RUNS`. What had no offset in the source is left out."""
    for at, translation in copied.items():
        for run in translation.runs:
            if run.source >= 0:
                yield (*at, *run)


def bound_rows(
    copied: Mapping[Partition, Translation], firsts: Mapping[Partition, int]
) -> Iterator[tuple[object, ...]]:
    """In the schema `measure.BOUNDS`: what is compared, up to where the mirror was, and from where the source still has
    it.
    """
    for at, translation in copied.items():
        end = max(0, translation.next_source)
        first = min(firsts.get(at, 0), end)
        begin = translation.place_of(first).target if translation.next_source >= 0 else translation.target_end
        yield (*at, end, begin, translation.target_end)


def not_compared(
    copied: Mapping[Partition, Translation], lasts: Mapping[Partition, int]
) -> tuple[list[str], list[str]]:
    """What the mirror has yet to copy: of partitions that it has begun with, and whole ones. `lasts`: of the source's
    records.
    """
    behind, uncopied = [], []
    for (topic, index), last in sorted(lasts.items()):
        translation = copied.get((topic, index))
        if translation is None or translation.latest is None:
            uncopied.append(f"{topic}-{index}: the mirror has not copied any of it, and it was compared with nothing")
        elif last >= max(0, translation.next_source):
            behind.append(
                f"{topic}-{index}: from offset {max(0, translation.next_source)} on the mirror had not copied it, and "
                "it was not compared"
            )
    return behind, uncopied
