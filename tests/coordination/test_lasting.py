"""What counts once it has been said for a while, and nothing else."""

from __future__ import annotations

from handler.coordination.lasting import Lasting


def test_it_is_believed_when_it_has_lasted() -> None:
    gone = Lasting(30.0)
    assert not gone.is_believed(0.0)
    gone.note(True, 100.0)
    assert not gone.is_believed(129.0)
    gone.note(True, 130.0)
    assert gone.is_believed(130.0)


def test_another_answer_is_a_break() -> None:
    gone = Lasting(30.0)
    gone.note(True, 100.0)
    gone.note(False, 129.0)
    gone.note(True, 131.0)
    assert not gone.is_believed(140.0)
    assert gone.is_believed(161.0)
