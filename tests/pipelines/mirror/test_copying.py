"""A partition is copied once and in order, and the record of offsets is true, whatever requests are lost, unanswered or
late.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import Refused
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.pipelines.copying import batches as module
from kafka_sidecar.pipelines.copying.delivery import Route
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.offset_runs import Place, Translation, decode
from kafka_sidecar.pipelines.mirror.copying import Slice, _Copying
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from tests.pipelines.mirror.model_kafka import Fault, ModelKafka
from tests.support.batches import batch

NAME: Final = MirrorName.of("dc")
ROUTE: Final = Route(mirror=NAME, topic="s", target_topic="t", partition=0, source_cluster="c")
MOST_TRIES: Final = 60


def source_log(sizes: list[int]) -> tuple[bytes, dict[int, bytes], int]:
    """Batches of so many records, with a marker after each third; the records by their offsets."""
    data, records, offset = b"", {}, 0
    for number, size in enumerate(sizes):
        values = [b"%d-%d" % (number, index) + b"v" * 9_000 for index in range(size)]
        data += offset.to_bytes(8, "big") + batch(*values)[8:]
        records.update({offset + index: value for index, value in enumerate(values)})
        offset += size
        if number % 3 == 2:
            data += offset.to_bytes(8, "big") + write_marker(9, 0, EndTransactionMarker(True, 0), 1)[8:]
            offset += 1
    return data, records, offset


def slice_of(end: int, **changes: Any) -> Slice:
    plain = Cluster(bootstrap="a:1")
    return Slice(route=ROUTE, source=plain, target=plain, known=None, end=end, seconds=60.0, **changes)


async def copied(source: ModelKafka, target: ModelKafka, end: int) -> int:
    """Tried until it is done, as rounds do it; each try knows only what is in the clusters. How many tries there
    were.
    """
    for tries in range(MOST_TRIES):
        copying = _Copying(slice_of(end))
        try:
            await copying.go_on(cast(Any, source), cast(Any, target))
        except (ConnectionError, Refused):
            continue
        assert copying.outcome.progress is not None
        assert copying.outcome.progress.next_source == end
        return tries
    raise AssertionError("it did not come to an end")


def check(target: ModelKafka, records: dict[int, bytes], end: int) -> None:
    there = target.readable("t")
    assert [entry.record for entry in there] == [(None, value) for value in records.values()]
    runs = [decode(cast(bytes, cast(Any, entry.record)[1])) for entry in target.readable(NAME.runs_topic)]
    translation = Translation(runs)
    at = {offset: entry.offset for offset, entry in zip(records, there, strict=True)}
    for offset in range(end + 1):
        behind = next((one for one in records if one >= offset), None)
        place = translation.place_of(offset)
        assert place.first_source == behind
        if behind is not None:
            assert place == Place(at[behind], behind)


FAULTS = st.dictionaries(st.integers(1, 60), st.sampled_from(Fault), max_size=8)


@settings(max_examples=100)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), FAULTS, FAULTS, st.sampled_from([1, 30_000, 10**9]))
def test_each_record_is_copied_once_and_in_order(
    sizes: list[int], source_faults: dict[int, Fault], target_faults: dict[int, Fault], transaction_bytes: int
) -> None:
    data, records, end = source_log(sizes)
    source, target = ModelKafka(source_faults, (data, end)), ModelKafka(target_faults)
    before = module.TRANSACTION_BYTES
    module.TRANSACTION_BYTES = transaction_bytes  # type: ignore[misc]
    try:
        asyncio.run(copied(source, target, end))
    finally:
        module.TRANSACTION_BYTES = before  # type: ignore[misc]
    target.settle()
    check(target, records, end)


async def test_what_another_wrote_is_not_written_over() -> None:
    data, _, end = source_log([2])
    source, target = ModelKafka({}, (data, end)), ModelKafka({})
    await copied(source, target, end)
    target.committed.clear()
    target.transactions.clear()
    with pytest.raises(CommandFailed, match="--into-existing"):
        await _Copying(slice_of(end)).go_on(cast(Any, source), cast(Any, target))


async def test_a_topic_that_was_made_anew_is_not_gone_on_with() -> None:
    data, _, end = source_log([2])
    source, target = ModelKafka({}, (data, end)), ModelKafka({})
    await copied(source, target, end)
    target.logs.clear()
    with pytest.raises(CommandFailed, match="was made again"):
        await _Copying(slice_of(end)).go_on(cast(Any, source), cast(Any, target))
