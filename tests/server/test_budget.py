"""Request bytes: granted in order, never more than the limit, a giant alone."""

from __future__ import annotations

from kafka_sidecar.server.budget import ByteBudget


def test_what_does_not_fit_waits_for_its_turn() -> None:
    budget = ByteBudget(100)
    granted: list[str] = []
    assert budget.reserve(80, lambda: granted.append("never called"))
    assert not budget.reserve(50, lambda: granted.append("first"))
    assert not budget.reserve(10, lambda: granted.append("second")), "it would fit, but others were before it"
    budget.release(80)
    assert granted == ["first", "second"]
    assert budget.used == 60


def test_a_request_larger_than_the_budget_is_granted_alone() -> None:
    budget = ByteBudget(100)
    granted: list[str] = []
    assert budget.reserve(10, lambda: None)
    assert not budget.reserve(500, lambda: granted.append("giant"))
    budget.release(10)
    assert granted == ["giant"]
    assert not budget.reserve(1, lambda: granted.append("after"))
    budget.release(500)
    assert granted == ["giant", "after"]


def test_who_leaves_the_queue_is_not_granted() -> None:
    budget = ByteBudget(10)
    granted: list[str] = []

    def leaves() -> None:
        granted.append("left")

    assert budget.reserve(10, lambda: None)
    assert not budget.reserve(5, leaves)
    assert not budget.reserve(5, lambda: granted.append("stays"))
    assert budget.withdraw(leaves)
    assert not budget.withdraw(leaves)
    budget.release(10)
    assert granted == ["stays"]
    assert budget.used == 5


def test_when_the_first_of_the_queue_leaves_smaller_ones_behind_it_need_not_wait() -> None:
    budget = ByteBudget(10)
    granted: list[str] = []

    def giant() -> None:
        granted.append("giant")

    assert budget.reserve(5, lambda: None)
    assert not budget.reserve(8, giant)
    assert not budget.reserve(5, lambda: granted.append("small"))
    assert budget.withdraw(giant)
    assert granted == ["small"]
