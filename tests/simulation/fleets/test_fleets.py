"""Seeds of whole fleets that must find nothing, and planted faults that must be found."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.fleets.mutants import MUTANTS, SECONDS, found_by
from tests.simulation.fleets.plan import drawn
from tests.simulation.fleets.run import run_plan
from tests.simulation.planted import seed_that_finds
from tests.simulation.test_simulation import first_seed_of_the_commit

pytestmark = pytest.mark.simulation

# The last one has found a fault.
SEEDS = (*range(1, 11), 51_000_072, 52_004_038)
# From which a few seconds are enough, where the first seed is not.
FOUND_SOON: dict[str, int] = {}
PARTS = 4
SEEDS_OF_A_PART = 4


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_is_there_whatever_fails(seed: int) -> None:
    result = run_plan(drawn(seed))
    assert result.violation is None
    assert result.operations > 0


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_found_by_the_seeds_of_this_commit(part: int) -> None:
    first = first_seed_of_the_commit() + part * SEEDS_OF_A_PART
    for seed in range(first, first + SEEDS_OF_A_PART):
        assert run_plan(drawn(seed)).violation is None, f"python -m tests.simulation.fleets.run {seed}"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_found(name: str) -> None:
    assert seed_that_finds(MUTANTS[name], found_by, SECONDS, FOUND_SOON.get(name, 1)) is not None


def test_each_kind_of_client_is_answered() -> None:
    counts = run_plan(drawn(6)).counts
    assert {kind for kind, count in counts.items() if count} == {
        "commit",
        "committed",
        "end",
        "end transaction",
        "fetch",
        "produce",
        "search",
        "share of a member",
        "start",
    }


def test_the_same_plan_is_the_same_run() -> None:
    first, second = run_plan(drawn(3)), run_plan(drawn(3))
    assert (first.steps, first.operations, first.seconds) == (second.steps, second.operations, second.seconds)
