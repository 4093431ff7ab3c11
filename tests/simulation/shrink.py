"""Make a plan that fails smaller, as long as it fails: `python -m tests.simulation.shrink SEED FILE`.

What is left tells a reader what it takes, and is kept in `regressions/`: faults, clients and bounds by name. A seed
alone is worth little, for it draws another run as soon as the simulation changes.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Final, TypeVar

from tests.simulation.plan import Bounds, Client, Fault, Plan, drawn
from tests.simulation.run import run_plan

SECONDS: Final = 600.0
T = TypeVar("T", Fault, Client)


def shrunk(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """The smallest that was found. Each step takes something away, and is taken back where the plan no longer fails."""
    while True:
        smaller = next((one for one in _smaller(plan) if fails(one)), None)
        if smaller is None:
            return plan
        plan = smaller


def _smaller(plan: Plan) -> Iterator[Plan]:
    """What takes most away comes first."""
    for faults in _with_less(plan.faults):
        yield replace(plan, faults=faults)
    for clients in _with_less(plan.clients):
        yield replace(plan, clients=clients)
    for number, client in enumerate(plan.clients):
        for fewer in _less_of(client):
            yield replace(plan, clients=(*plan.clients[:number], fewer, *plan.clients[number + 1 :]))
    ordinary = Bounds()
    for one in fields(Bounds):
        usual = getattr(ordinary, one.name)
        if getattr(plan.bounds, one.name) != usual:
            yield replace(plan, bounds=replace(plan.bounds, **{one.name: usual}))


def _with_less(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    size = len(items)
    while size:
        for begin in range(0, len(items), size):
            yield items[:begin] + items[begin + size :]
        size //= 2


def _less_of(client: Client) -> Iterator[Client]:
    if client.batches > 1:
        yield replace(client, batches=client.batches // 2)
        yield replace(client, batches=client.batches - 1)
    if client.wanders:
        yield replace(client, wanders=0.0)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.shrink", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("file", type=Path, help="where the plan is put")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    until, plan = time.monotonic() + SECONDS, drawn(options.seed)
    if run_plan(plan).violation is None:
        print(f"seed {options.seed} finds nothing")
        return 1

    def fails(smaller: Plan) -> bool:
        if time.monotonic() > until or run_plan(smaller).violation is None:
            return False
        print(f"{len(smaller.faults)} faults, {len(smaller.clients)} clients", flush=True)
        options.file.write_text(json.dumps(smaller.as_data(), indent=1) + "\n")
        return True

    found = shrunk(plan, fails)
    options.file.write_text(json.dumps(found.as_data(), indent=1) + "\n")
    print(f"{options.file}: {run_plan(found).violation}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
