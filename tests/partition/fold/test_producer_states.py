"""Producers fall asleep, wake up and expire. Whoever asks for one does not notice, until it is gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.log_times import DAY_MS
from kafka_sidecar.partition.fold.producer_state import Before, ProducerState, Unjudged
from kafka_sidecar.partition.fold.producer_states import AWAKE_BYTES, AWAKE_SHARE, ProducerMemory, ProducerStates
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.basis import UNKNOWN_PRODUCER, BatchSequence, KnownProducer
from kafka_sidecar.pulsar.entry import Position


class Counted:
    """What a fold knows of its producers: their states alone."""

    def __init__(self, states: ProducerStates) -> None:
        self.states = states
        self.size = states.size


def at(entry: int) -> ProducerState:
    """Of a producer whose last batch is there."""
    return ProducerState(0, entry, Position(1, entry))


def of(
    *producers: int, most_awake: int = 4, held: tuple[int, ...] = (), memory: ProducerMemory | None = None
) -> ProducerStates:
    """They have written in this order."""
    transactions = TransactionTable()
    for producer_id in held:
        transactions.append(producer_id, 1, 0)
    states = ProducerStates(memory or ProducerMemory(most_awake=most_awake), transactions)
    for entry, producer_id in enumerate(producers):
        states[producer_id] = at(entry)
        states.move_to_end(producer_id)
    return states


def a_day_later(states: ProducerStates, expired_to: int) -> None:
    states.times.note(Position(1, expired_to), 0)
    states.times.note(Position(1, 1_000), DAY_MS)


def settle(states: ProducerStates) -> None:
    """All fall asleep, and whose time is over is gone."""
    for _ in range(100):
        states.put_to_sleep(Position(1, 10_000))
        states.expire()


@given(st.lists(st.tuples(st.sampled_from(("write", "ask", "forget", "press")), st.integers(0, 9))), st.integers(1, 12))
def test_however_few_may_be_awake_it_is_a_mapping(steps: list[tuple[str, int]], most_awake: int) -> None:
    memory = ProducerMemory(most_awake=most_awake)
    states, expected = of(memory=memory), dict[int, ProducerState]()
    for entry, (what, producer_id) in enumerate(steps):
        if what == "press":
            memory.awake = 100_000 * (producer_id % 2)  # other folds have many, or have them no more
        elif what == "write":
            states[producer_id] = at(entry)
            states.move_to_end(producer_id)
            expected[producer_id] = at(entry)
        elif what == "ask":
            assert states.get(producer_id) == expected.get(producer_id)
        else:
            assert states.pop(producer_id) == expected.pop(producer_id, None)
        assert len(states) == len(expected)
        assert len(states.awake) <= most_awake
        assert states.is_asleep(producer_id) == (producer_id in expected and producer_id not in states.awake)
    assert dict(states.items()) == expected


def test_one_that_is_written_to_while_awake_falls_asleep_as_it_is_then() -> None:
    states = of(1, 2, 3, 4)
    states[1].last = 99
    states[5] = at(9)
    assert 1 not in states.awake
    assert states[1].last == 99


def test_those_that_fall_asleep_are_the_ones_that_have_written_nothing_since() -> None:
    states = of(1, 2, 3)
    states.put_to_sleep(Position(1, 1))
    assert list(states.awake) == [3]
    assert len(states) == 3


def test_one_of_which_the_past_is_not_known_stays_awake() -> None:
    states = of(1, most_awake=1)
    seen = Unjudged(BatchSequence(1, 0, 0, 0), 0, Position(1, 0), 0, Position(1, 0), UNKNOWN_PRODUCER)
    states[1].follows = Before(KnownProducer(0, 0), (seen,))
    states[2] = at(1)
    states[3] = at(2)
    assert states.awake[1].follows == Before(KnownProducer(0, 0), (seen,))
    assert 3 in states.awake, "who is about to be written to does not fall asleep"


def test_who_has_written_nothing_for_a_day_is_gone() -> None:
    states = of(1, 2, 3, 4, 5, 6)
    a_day_later(states, expired_to=3)
    assert sorted(producer_id for producer_id, _ in states.items()) == [5, 6]
    assert [producer_id in states for producer_id in (1, 4, 5, 6)] == [False, False, True, True]
    settle(states)
    assert len(states) == 2


def test_a_sweep_takes_those_that_had_expired_when_it_began() -> None:
    states = of(*range(2_000), most_awake=1)
    a_day_later(states, expired_to=900)
    states.expire()
    states.times.note(Position(1, 1_500), DAY_MS + DAY_MS // 2)
    states.times.note(Position(1, 5_000), 3 * DAY_MS)
    settle(states)
    assert sorted(producer_id for producer_id, _ in states.items()) == list(range(1_501, 2_000))
    assert len(states) == 499


def test_who_has_a_transaction_open_stays() -> None:
    states = of(1, 2, 3, 4, 5, 6, held=(1, 3))
    a_day_later(states, expired_to=5)
    settle(states)
    assert sorted(producer_id for producer_id, _ in states.items()) == [1, 3]


def test_where_all_folds_together_have_too_many_awake_each_has_its_part() -> None:
    memory = ProducerMemory(limit=100 * AWAKE_BYTES * AWAKE_SHARE)
    folds = [of(*range(90), memory=memory) for _ in range(50)]
    for _ in range(10):
        memory.count(Counted(states) for states in folds)
        for states in folds:
            states.put_to_sleep(Position(0, 0))
    memory.count(Counted(states) for states in folds)
    assert memory.awake <= 100
    assert all(len(states) == 90 for states in folds)
    assert memory.used == sum(states.size for states in folds)
    assert not memory.is_full


def test_one_that_a_writer_knew_is_not_gone_though_its_place_is_old() -> None:
    states = of(1)
    a_day_later(states, expired_to=5)
    states.put_though_old(2, at(3))
    assert states[2].at == Position(1, 3), "its place stays what it is in all folds"
    settle(states)
    assert states.get(2) is not None
    states.times.note(Position(1, 1_001), 3 * DAY_MS)
    settle(states)
    assert states.get(2) is None
    assert states.size == ProducerStates(ProducerMemory(), None).size, "nothing is left of it"


def test_one_that_is_gone_is_not_spared_when_it_comes_back() -> None:
    states = of(1)
    a_day_later(states, expired_to=5)
    states.put_though_old(2, at(3))
    states.pop(2)
    states[2] = at(4)
    assert states.get(2) is None
