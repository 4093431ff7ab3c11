"""What members store of themselves."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.recent_members import PUT_SECONDS, SEEN, RecentMembers, Seen
from kafka_sidecar.fleet.recent_nodes import RECENT_SECONDS
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.model.sidecar import Endpoint

OWN, OTHER = Member(0, "here", 9092), Member(1, "there", 9093, "rack", Endpoint("outside", 9094))


def test_each_says_twice_while_it_is_recent_that_it_is_there() -> None:
    assert 2 * PUT_SECONDS < RECENT_SECONDS


@pytest.mark.parametrize("member", [OWN, OTHER])
def test_a_member_is_read_as_it_was_stored(member: Member) -> None:
    assert SEEN.decode(SEEN.encode(Seen(7, member))) == Seen(7, member)


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'[1, 2, "host", "port", null, null]'])
def test_what_is_no_member_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"member|Expecting"):
        SEEN.decode(data)


def test_the_later_word_of_a_node_counts() -> None:
    assert SEEN.supersedes(Seen(2, OWN), Seen(1, OTHER))
    assert not SEEN.supersedes(Seen(1, OWN), Seen(1, OTHER))


async def test_others_of_the_same_fleet_are_told_and_how_long_ago_they_were_seen() -> None:
    seen: list[tuple[Member, float]] = []
    nothing = cast(Any, None)
    clock = SYSTEM_CLOCK._replace(wall=lambda: 10_000)
    members = RecentMembers(
        nothing,
        nothing,
        "public/__kafka",
        OWN,
        "public/default",
        lambda member, ago: seen.append((member, ago)),
        clock,
        new_id,
    )
    members._on_change("public/default 1", Seen(7_500, OTHER))
    members._on_change("public/default 0", Seen(7_500, OWN))  # before it was started again
    members._on_change("public/elsewhere 1", Seen(7_500, Member(1, "elsewhere", 9092)))
    assert seen == [(OTHER, 2.5)]
