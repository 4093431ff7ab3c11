"""Faults that are planted in whole sidecars. If the simulation does not find one, it has gone blind."""

from __future__ import annotations

import sys
from typing import Final

from tests.simulation.fleets.plan import drawn
from tests.simulation.fleets.run import run_plan
from tests.simulation.planted import Mutant, search

SECONDS: Final = 60.0


MUTANTS: Final = {
    "tells-of-itself-alone": Mutant(
        "clients are told of no other node",
        "kafka_sidecar.apis.common.nodes._reachable",
        lambda original: lambda services, client, _: original(services, client, [services.fleet.own]),
    ),
    "overtakes-a-refused-batch": Mutant(
        "what stands behind a refused batch is taken",
        "kafka_sidecar.apis.state.refused_batches.RefusedBatches.before",
        lambda _: lambda *_: None,
    ),
}


def found_by(seed: int) -> str | None:
    return run_plan(drawn(seed)).violation


if __name__ == "__main__":
    sys.exit(search(sys.argv[1:], "tests.simulation.fleets.mutants", MUTANTS, found_by, SECONDS))
