"""What is left of a plan is what it takes to fail."""

from __future__ import annotations

from tests.simulation.plan import Bounds, FaultKind, Plan, drawn
from tests.simulation.shrink import shrunk


def test_what_a_failure_does_not_need_is_taken_away() -> None:
    plan = drawn(3)
    assert len(plan.faults) > 3

    def fails(smaller: Plan) -> bool:
        return any(fault.kind is FaultKind.KILL for fault in smaller.faults) and any(
            client.batches for client in smaller.clients
        )

    assert fails(plan)
    small = shrunk(plan, fails)
    assert [fault.kind for fault in small.faults] == [FaultKind.KILL]
    (client,) = small.clients
    assert (client.batches, client.wanders) == (1, 0.0)
    assert small.bounds == Bounds()
