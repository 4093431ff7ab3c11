"""Seeds of coordinators that must find nothing, and planted faults that must be found."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.simulation.coordinators.mutants import MUTANTS, SECONDS, found_by
from tests.simulation.coordinators.plan import drawn
from tests.simulation.coordinators.run import run_plan
from tests.simulation.planted import seed_that_finds
from tests.simulation.test_simulation import first_seed_of_the_commit

pytestmark = pytest.mark.simulation

# The last three have found faults.
SEEDS = (*range(1, 31), 20_000_304, 30_000_043, 433_261_351)
SEEDS_OF_A_COMMIT = 100
# From which a few seconds are enough, where the first seed is not.
FOUND_SOON = {
    "completes-in-one-write": 90,
    "takes-all-commits": 110,
    "proves-nothing": 85,
    "takes-all-for-given-up": 55,
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_is_what_every_term_begins_with(seed: int) -> None:
    result = run_plan(drawn(seed))
    assert result.violation is None
    assert result.operations > 0


def test_nothing_is_found_by_the_seeds_of_this_commit() -> None:
    first = first_seed_of_the_commit()
    for seed in range(first, first + SEEDS_OF_A_COMMIT):
        assert run_plan(drawn(seed)).violation is None, f"python -m tests.simulation.coordinators.run {seed}"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_found(name: str) -> None:
    assert seed_that_finds(MUTANTS[name], found_by, SECONDS, FOUND_SOON.get(name, 1)) is not None


def test_each_kind_of_client_is_answered() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        counts.update(run_plan(drawn(seed)).counts)
    assert set(counts) == {
        "a batch of a transaction is acknowledged",
        "a fact is acknowledged",
        "a fact is asked",
        "a group is deleted",
        "a log has given bytes back",
        "a member is given its share",
        "a member of the consumer protocol is assigned",
        "a member's offset is acknowledged",
        "a producer begins",
        "a transaction has ended",
        "a value is acknowledged",
        "a value is read",
        "an offset is acknowledged",
        "an offset is read",
        "an offset of a transaction is acknowledged",
    }


def test_the_same_plan_is_the_same_run() -> None:
    first, second = run_plan(drawn(3)), run_plan(drawn(3))
    assert (first.steps, first.operations, first.seconds) == (second.steps, second.operations, second.seconds)
