"""Packed states are what they were before they were packed, however many there are."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.packed_states import _HEAD_BYTES, PackedStates, _ordinary
from kafka_sidecar.partition.fold.producer_state import ANY_SEQUENCE, Before, ProducerState, WrittenBatch
from kafka_sidecar.partition.log.basis import KnownProducer
from kafka_sidecar.pulsar.entry import Position

_int32, _int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
_positions = st.builds(Position, _int64, _int64)
_batches = st.builds(WrittenBatch, _int32, _int32, _int64, _positions)
_before = st.builds(Before, st.builds(KnownProducer, _int32, _int32), st.just(()))
states = st.builds(
    ProducerState,
    st.integers(-1, 2**15 - 1),
    _int32,
    _positions,
    _int64,
    st.lists(_batches, max_size=5).map(lambda few: deque(few, maxlen=5)),
    st.none() | _before,
    st.booleans(),
    st.none() | _int32,
    st.none() | _int32,
    st.booleans(),
)


def ended(number: int) -> ProducerState:
    """Of a producer that wrote one batch."""
    at = Position(1_234_567, number)
    return ProducerState(0, 9, at, 1_700_000_000_000 + number, deque([WrittenBatch(0, 9, 10 * number, at)], maxlen=5))


@given(st.dictionaries(_int64, states, max_size=100), st.data())
def test_they_are_what_they_were(expected: dict[int, ProducerState], data: st.DataObject) -> None:
    packed = PackedStates()
    for producer_id, state in expected.items():
        packed.add(producer_id, state)
    assert dict(packed.items()) == expected
    assert all(state.is_first == expected[producer_id].is_first for producer_id, state in packed.items())
    assert dict(PackedStates.of_pages(packed.pages).items()) == expected
    copied = packed.copy()
    for producer_id in data.draw(st.lists(st.sampled_from(sorted(expected)), unique=True)) if expected else ():
        assert packed.pop(producer_id) == expected[producer_id]
        assert packed.pop(producer_id) is None
    assert dict(copied.items()) == expected, "a copy stays what it is"
    assert len(copied) == len(expected)


RANDOM = random.Random(1)


@pytest.mark.parametrize(
    "ids", [range(5_000), range(0, 5_000 << 44, 1 << 44), [RANDOM.getrandbits(63) for _ in range(5_000)]]
)
def test_one_that_has_ended_takes_forty_bytes_whatever_ids_look_like(ids: range | list[int]) -> None:
    packed = PackedStates()
    for number, producer_id in enumerate(ids):
        packed.add(producer_id, ended(number))
    assert packed.size < 40 * len(ids)
    assert max(map(len, packed.pages)) < 5 * packed.size / len(packed.pages), "no page is much longer than others"
    assert all(packed.pop(producer_id) == ended(number) for number, producer_id in enumerate(ids))
    assert len(packed) == 0


def test_those_that_are_gone_are_swept_out_some_pages_at_a_time() -> None:
    packed = PackedStates()
    for number in range(1_000):
        packed.add(number, ended(number))
    steps, held = 1, {7}
    while not packed.sweep(3, lambda producer_id, at: at.entry < 900 and producer_id not in held):
        steps += 1
    assert steps > 3
    assert sorted(one for one, _ in packed.items()) == [7, *range(900, 1_000)]
    assert packed.sweep(10_000, lambda *_: True)
    assert not packed.pages[0]
    assert packed.size < 100


@pytest.mark.parametrize(
    "change",
    [
        lambda page: page[:-1],
        lambda page: page + b"\0",
        lambda page: page + page,
        lambda page: page[:8] + b"\0\0" + page[10:],
        lambda page: page[:10] + b"\x60" + page[11:],
        lambda page: page[:-1] + b"\x80",
        lambda page: b"\7" + page[1:],
        lambda page: (
            page[:8]
            + (int.from_bytes(page[8:10], "little") + 9).to_bytes(2, "little")
            + page[10:-1]
            + b"\x81" * 9
            + page[-1:]
        ),
        lambda page: of_first(page, ProducerState(2**40, 0, Position(1, 1))),
        lambda page: of_first(page, ProducerState(2**31, 0, Position(1, 1))),
        lambda page: of_first(
            page, ProducerState(0, 2**31 - 1, Position(1, 1), 0, deque([WrittenBatch(0, 2**31, 0, Position(1, 1))]))
        ),
        lambda page: of_first(
            page, ProducerState(0, 9, Position(1, 1), 0, deque([WrittenBatch(0, 9, 2**63, Position(1, 1))]))
        ),
    ],
    ids=[
        "it ends early",
        "something follows",
        "a producer is there twice",
        "no numbers",
        "six batches",
        "a number goes on",
        "of another page",
        "a number of ten bytes",
        "an epoch that Kafka does not have",
        "the first epoch that does not exist",
        "the first sequence that does not exist",
        "the first offset that does not exist",
    ],
)
def test_pages_that_never_were_are_refused(change: object) -> None:
    packed = PackedStates()
    for number in range(64):
        packed.add(number, ended(number))
    assert callable(change)
    first, *others = packed.pages
    with pytest.raises(ValueError, match=r"."):
        PackedStates.of_pages([change(first), *others])


def of_first(page: bytes, state: ProducerState) -> bytes:
    """A page of its first producer alone."""
    packed = PackedStates()
    packed.add(int.from_bytes(page[:8], "little", signed=True), state)
    return packed.pages[0]


@pytest.mark.parametrize("sign", [1, -1])
def test_no_sum_of_what_one_look_passes_is_too_large(sign: int) -> None:
    small, large = sign * (2**27 - 1), sign * (2**55 - 1)
    at, state = Position(large, large), ProducerState(small, small, Position(large, large), large)
    last, offset = small, 0
    for _ in range(5):  # each as far from the one behind it as may be
        first, at, offset = last + 2 * small, Position(at.ledger + large, at.entry + large), offset + large
        state.batches.appendleft(WrittenBatch(first, last + small, offset, at))
        last = first
    packed = PackedStates()
    packed.add(1, state)
    (page,) = packed.pages
    body = page[_HEAD_BYTES:]
    assert _ordinary(body[0]).fullmatch(body)
    assert dict(PackedStates.of_pages(packed.pages).items()) == {1: state}
    assert all(abs(number) < 2**31 for number in (small, first))
    assert all(abs(number) < 2**63 for number in (offset, *at))


def test_those_that_lack_earlier_batches_are_found_without_looking_into_others() -> None:
    packed = PackedStates()
    for number in range(100):
        packed.add(number, ended(number))
    lacks = ProducerState(0, 5, Position(1, 2), follows=Before(KnownProducer(0, 4)))
    packed.add(1_000, lacks)
    assert list(packed.that_follow()) == [(1_000, lacks)]
    assert 1_000 in packed
    assert 1_001 not in packed


def test_what_was_seen_before_its_batches_is_not_packed() -> None:
    packed = PackedStates()
    packed.add(1, ProducerState(0, 5, Position(1, 2), follows=Before(KnownProducer(0, ANY_SEQUENCE))))
    found = packed.pop(1)
    assert found is not None
    assert found.follows == Before(KnownProducer(0, ANY_SEQUENCE), ())
