"""What counts once it has been said again and again for a while."""

from __future__ import annotations

from kafka_sidecar.loop.lasting import Lasting


def gone() -> Lasting:
    return Lasting(30.0, longest_pause=20.0)


def said(lasting: Lasting, *times: float) -> bool:
    for now in times:
        lasting.say(now)
    return lasting.is_believed(times[-1])


def test_it_is_believed_when_it_has_lasted() -> None:
    lasting = gone()
    assert not lasting.is_believed(0.0)
    assert not said(lasting, 100.0, 110.0, 120.0, 129.0)
    assert said(lasting, 130.0)
    assert not lasting.is_believed(151.0), "nobody has said so for long"


def test_two_times_are_not_enough() -> None:
    lasting = Lasting(30.0, longest_pause=60.0)
    assert not said(lasting, 100.0, 140.0)
    assert said(lasting, 141.0)


def test_it_is_not_believed_when_the_contrary_was_said() -> None:
    lasting = gone()
    said(lasting, 100.0, 110.0, 120.0)
    lasting.deny()
    assert not said(lasting, 129.0, 135.0, 145.0)


def test_it_is_not_believed_when_it_was_said_before_a_long_pause() -> None:
    lasting = gone()
    assert not said(lasting, 100.0, 1_000.0)
    assert not said(lasting, 1_010.0, 1_020.0)
    assert said(lasting, 1_030.0)
