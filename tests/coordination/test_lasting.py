"""What counts once it has been said again and again for a while."""

from __future__ import annotations

from handler.coordination.lasting import Lasting


def said(gone: Lasting, *times: float) -> bool:
    for now in times:
        gone.say(now)
    return gone.is_believed(times[-1])


def test_it_is_believed_when_it_has_lasted() -> None:
    gone = Lasting(30.0)
    assert not gone.is_believed(0.0)
    assert not said(gone, 100.0, 110.0, 120.0, 129.0)
    assert said(gone, 130.0)
    assert not gone.is_believed(141.0), "nobody has said so for long"


def test_it_is_not_believed_when_the_contrary_was_said() -> None:
    gone = Lasting(30.0)
    said(gone, 100.0, 110.0, 120.0)
    gone.deny()
    assert not said(gone, 129.0, 135.0, 145.0)


def test_it_is_not_believed_when_it_was_said_before_a_long_pause() -> None:
    gone = Lasting(30.0)
    assert not said(gone, 100.0, 1_000.0)
    assert not said(gone, 1_010.0, 1_020.0)
    assert said(gone, 1_030.0)
