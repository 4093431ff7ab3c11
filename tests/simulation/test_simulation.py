"""Seeds that must find nothing, planted faults that must be found, and what makes a run worth repeating."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS, SECONDS, found_by
from tests.simulation.plan import Plan, drawn
from tests.simulation.planted import seed_that_finds
from tests.simulation.run import run_plan
from tests.simulation.tally import tallied

pytestmark = pytest.mark.simulation

SEEDS = range(1, 13)
# Of the seeds that a commit draws. They take about a minute of both processors, and are as many on a fast machine as on
# a slow one.
PARTS = 16
SEEDS_OF_A_PART = 5


def first_seed_of_the_commit() -> int:
    """Others for each commit, and the same wherever it is tried."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("this is no checkout")
    command = [git, "rev-parse", "HEAD"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)  # noqa: S603
    if asked.returncode:
        pytest.skip("this is no checkout")
    return 1_000_000 + int(asked.stdout[:8], 16)


# Plans that failed, made smaller (see `shrink`), each named after what it found.
REGRESSIONS = Path(__file__).parent / "regressions"
# Some, each with a seed from which on a few seconds are enough. All of them: make simulate-mutants.
FOUND_SOON = {
    "the-past-is-nothing": 2002,
    "nothing-is-behind": 2000,
    "end-is-old": 1,
    "sends-before-it-reads": 1,
    "silent-tails-stay": 5040,
    "names-old-ends": 2004,
    "another-log-is-an-alarm": 42,
    "formats-are-of-topics": 9,
    "copies-are-new": 44,
    "renumbered-backwards": 12,
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_doubled_or_told_wrongly_whatever_happens(seed: int) -> None:
    result = run_plan(drawn(seed))
    assert result.violation is None, f"make simulate SEED={seed}"
    assert result.operations > 0


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_found_by_the_seeds_of_this_commit(part: int) -> None:
    first = first_seed_of_the_commit() + part * SEEDS_OF_A_PART
    for seed in range(first, first + SEEDS_OF_A_PART):
        assert run_plan(drawn(seed)).violation is None, f"make simulate SEED={seed}"


@pytest.mark.parametrize("kept", sorted(REGRESSIONS.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_found_once_is_not_found_again(kept: Path) -> None:
    assert run_plan(Plan.of_data(json.loads(kept.read_text()))).violation is None


@pytest.mark.parametrize("name", FOUND_SOON)
def test_a_planted_fault_is_found(name: str) -> None:
    assert seed_that_finds(MUTANTS[name], found_by, SECONDS, FOUND_SOON[name]) is not None


def test_the_same_plan_is_the_same_run_also_when_it_was_kept_as_a_list() -> None:
    plan = drawn(8)
    kept = Plan.of_data(json.loads(json.dumps(plan.as_data())))
    assert kept == plan
    first, second = run_plan(plan), run_plan(kept)
    assert (first.steps, first.operations, first.seconds) == (second.steps, second.operations, second.seconds)


def test_faults_strike_and_clients_go_on() -> None:
    results = [run_plan(drawn(seed)) for seed in (5, 8)]
    assert all(result.struck.total() >= 3 and result.operations >= 150 for result in results)


def test_what_happens_in_runs_is_counted() -> None:
    with tallied() as counts:
        result = run_plan(drawn(8))
    assert counts["a batch is acknowledged"] > 0
    assert counts["a log is held against the reference"] == 1
    assert counts["an offset is seen by a consumer"] > result.operations / 10
