"""The names that members use for topics: what is remembered of them is bounded by its bytes."""

from __future__ import annotations

from kafka_sidecar.apis.state.member_forms import BYTES_OF_A_NAME, Joined, RememberedForms

LONG = "x" * 400


def of_name(name: str) -> Joined:
    return Joined({f"persistent://team/sales/{name}": name})


def test_a_member_is_remembered_until_it_joins_anew() -> None:
    remembered = RememberedForms()
    remembered.remember("g", "m", of_name("a"))
    assert remembered.of("g", "m") == of_name("a")
    assert remembered.of("g", "other") == Joined()
    remembered.remember("g", "m", of_name("b"))
    assert remembered.of("g", "m") == of_name("b")
    remembered.remember("g", "m", Joined())
    assert remembered.of("g", "m") == Joined()


def test_those_that_joined_first_are_forgotten_where_there_is_no_more_room() -> None:
    remembered = RememberedForms(most_bytes=50 * BYTES_OF_A_NAME)
    names = [f"m{number}" for number in range(20)]
    for member in ("first", "second", "first", *names):
        remembered.remember("g", member, of_name("a"))
    there = [member for member in ("second", "first", *names) if remembered.of("g", member).forms]
    assert 5 < len(there) < 15
    assert there == names[-len(there) :]


def test_long_names_take_more_room_than_short_ones() -> None:
    remembered = RememberedForms(most_bytes=50 * BYTES_OF_A_NAME)
    remembered.remember("g", "m", of_name("a"))
    leaders = [f"leader {number}" for number in range(4)]
    for leader in leaders:
        remembered.remember("g", leader, Joined(in_short={"m": frozenset({LONG + str(one) for one in range(2)})}))
    assert all(remembered.of("g", leader).in_short for leader in leaders)
    assert remembered.of("g", "m") == of_name("a")
    remembered.remember("g", "another", Joined(in_short={"m": frozenset({LONG})}))
    assert remembered.of("g", "m") == Joined()


def test_what_takes_the_room_of_all_others_is_not_remembered() -> None:
    remembered = RememberedForms(most_bytes=50 * BYTES_OF_A_NAME)
    remembered.remember("g", "m", of_name("a"))
    remembered.remember("g", "large", Joined(in_short={"m": frozenset({f"t{number}" for number in range(100)})}))
    assert remembered.of("g", "m") == of_name("a")
    assert remembered.of("g", "large") == Joined()
