"""Faults that are planted: each replaces one method for a while, and a simulation must find it."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.simulation.replaced import replaced

# What a seed finds, if anything.
Violation = str | None


class Mutant(NamedTuple):
    says: str
    method: str  # qualified name
    replacement: Callable[[Any], Any]  # of the method as it is


class Found(NamedTuple):
    seed: int
    violation: str
    seconds: float


def seed_that_finds(mutant: Mutant, run: Callable[[int], Violation], seconds: float, first: int = 1) -> Found | None:
    """The first seed with a violation that it has not without the planted fault, what it is, and how long that took."""
    begun, seed = time.process_time(), first - 1
    while time.process_time() - begun < seconds:
        seed += 1
        with replaced(mutant.method, mutant.replacement):
            violation = run(seed)
        if violation is not None:
            took = time.process_time() - begun
            if (of_its_own := run(seed)) is not None:
                raise AssertionError(f"seed {seed} has a violation without a planted fault: {of_its_own}")
            return Found(seed, violation, took)
    return None


def search(
    arguments: list[str], module: str, mutants: Mapping[str, Mutant], run: Callable[[int], Violation], seconds: float
) -> int:
    """As it is asked for at the command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*mutants, []], help="all if none is given")
    names = parser.parse_args(arguments).names or list(mutants)
    logging.disable(logging.CRITICAL)
    missed = 0
    for name in names:
        found = seed_that_finds(mutants[name], run, seconds)
        missed += found is None
        told = (
            f"not found in {seconds:.0f} s"
            if found is None
            else f"seed {found.seed}, {found.seconds:.1f} s: {found.violation}"
        )
        print(f"{name:26} {told}", flush=True)
    return 1 if missed else 0
