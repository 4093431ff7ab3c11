"""What is due when."""

from __future__ import annotations

from kafka_sidecar.groups.deadlines import Deadlines


def test_what_is_put_off_is_not_due() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.set("b", 20)
    deadlines.set("a", 30)
    assert deadlines.earliest is not None
    assert deadlines.earliest <= 20
    assert deadlines.take_due(10) == []
    assert deadlines.earliest == 20
    assert deadlines.take_due(25) == ["b"]
    assert deadlines.take_due(30) == ["a"]
    assert deadlines.earliest is None


def test_what_is_cancelled_is_never_due() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.cancel("a")
    deadlines.cancel("b")
    assert deadlines.take_due(100) == []


def test_the_first_setting_stands_where_it_is_asked_to() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set_if_absent("a", 10)
    deadlines.set_if_absent("a", 20)
    assert deadlines.take_due(10) == ["a"]
