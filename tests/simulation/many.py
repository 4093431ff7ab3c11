"""Many runs in a row, as they are asked for at the command line."""

from __future__ import annotations

import argparse
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol


class Result(Protocol):
    @property
    def violation(self) -> str | None: ...
    @property
    def operations(self) -> int: ...
    @property
    def struck(self) -> Counter[Any]: ...


def arguments_for(module: str, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("first", type=int, nargs="?", default=1, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so much time of this processor")
    parser.add_argument("--log", action="store_true", help="what is going to happen, and what the sidecars log of it")
    return parser


def run_seeds(options: argparse.Namespace, run: Callable[[int], Result], counts: Counter[str]) -> int:
    """`counts`: what runs have counted, once they have run. Returns 1 where one has found something."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.disable(logging.NOTSET if options.log else logging.CRITICAL)
    begun, operations, faults, runs, bad = time.process_time(), 0, 0, 0, 0
    for seed in range(options.first, options.first + options.count):
        result = run(seed)
        runs, operations, faults = runs + 1, operations + result.operations, faults + result.struck.total()
        if result.violation is not None:
            bad += 1
            print(f"seed {seed}: {result.violation}", flush=True)
        if time.process_time() - begun > options.seconds:
            break
    took = time.process_time() - begun
    for says, count in sorted(counts.items()):
        print(f"{count:12,}  {says}")
    rate = f"{operations} client operations ({operations / took:.0f} a second)"
    print(f"{runs} runs, {bad} with a violation, {rate}, {faults} faults, {took:.1f} s")
    return 1 if bad else 0
