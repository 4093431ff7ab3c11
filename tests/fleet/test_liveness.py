"""Who is told of and who leads: by answers, and by what the directory says of those that were never heard."""

from __future__ import annotations

from kafka_sidecar.fleet.liveness import SILENT_PINGS, STEADY_ANSWERS, Liveness

NAMES = ("a", "b")


def of(*names: str) -> Liveness:
    """Each was asked once, and has not answered yet."""
    liveness = Liveness()
    liveness.listed(names)
    for name in names:
        liveness.unanswered(name)
    return liveness


def leading(liveness: Liveness) -> set[str]:
    return {name for name in NAMES if liveness.leads(name)}


def told(liveness: Liveness) -> set[str]:
    return {name for name in NAMES if liveness.is_advertised(name)}


def test_who_answered_and_then_is_silent_leads_no_more_and_stays_a_node() -> None:
    liveness = of("a", "b")
    liveness.answered("a", serves=True)
    for _ in range(SILENT_PINGS):
        assert leading(liveness) == {"a", "b"}
        liveness.unanswered("a")
    assert leading(liveness) == {"b"}
    assert (told(liveness), liveness.silent) == ({"a", "b"}, ["a"])


def test_who_was_silent_leads_again_when_it_has_answered_for_a_while() -> None:
    liveness = of("a")
    liveness.answered("a", serves=True)
    for _ in range(SILENT_PINGS):
        liveness.unanswered("a")
    for _ in range(STEADY_ANSWERS):
        assert not liveness.leads("a")
        liveness.answered("a", serves=True)
    assert liveness.leads("a")


def test_a_ping_of_its_own_is_a_sign_of_life_and_tells_whether_it_serves() -> None:
    liveness = of("a")
    liveness.answered("a", serves=True)
    for _ in range(100):
        liveness.unanswered("a")
        liveness.heard("a", serves=True)
    assert leading(liveness) == {"a"}
    liveness.heard("a", serves=False)
    assert leading(liveness) == set()


def test_of_who_was_never_heard_the_directory_is_believed_unless_others_have_heard_it_fall_silent() -> None:
    liveness = of("a", "b")
    for _ in range(100):
        liveness.unanswered("a")
    assert leading(liveness) == {"a", "b"}
    liveness.answered("b", serves=True, silent=["a"])
    assert leading(liveness) == {"b"}


def test_who_pings_and_can_not_be_pinged_leads_all_the_time() -> None:
    """Its control port can't be reached from here: a wrong address, a firewall."""
    liveness = Liveness()
    liveness.listed({"a"})
    liveness.unanswered("a")
    for _ in range(2 * SILENT_PINGS):
        assert leading(liveness) == {"a"}
        liveness.heard("a", serves=True)
        assert leading(liveness) == {"a"}
        liveness.unanswered("a")


def test_who_does_not_serve_yet_or_any_more_leads_nothing_and_is_told_of() -> None:
    liveness = of("a")
    liveness.answered("a", serves=False)
    assert (leading(liveness), told(liveness)) == (set(), {"a"})
    liveness.answered("a", serves=True)
    assert leading(liveness) == {"a"}


def test_a_directory_that_forgets_everybody_for_a_moment_ends_no_fleet() -> None:
    liveness = of("a", "b")
    liveness.answered("a", serves=True)
    liveness.listed([])
    assert leading(liveness) == told(liveness) == {"a"}, "nobody has heard b"
    for _ in range(SILENT_PINGS):
        assert told(liveness) == {"a"}
        liveness.unanswered("a")
        liveness.listed([])
    assert told(liveness) == set(), "it is neither listed nor there"


def test_one_that_was_not_asked_yet_leads_nothing_unless_it_can_not_be_asked() -> None:
    liveness = Liveness()
    liveness.listed(NAMES, ["b"])
    assert leading(liveness) == {"b"}
    liveness.unanswered("a")
    assert leading(liveness) == {"a", "b"}
