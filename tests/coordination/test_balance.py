"""Shards over sidecars: about as many for each, and each move is a new term."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from kafka_sidecar.coordination.balance import (
    CLAIM_AGAIN_SECONDS,
    CLAIM_SECONDS,
    STABLE_SECONDS,
    Balance,
    claim_priority,
    newcomer_priority,
)

NAMES = st.lists(st.text("abcdef0123456789", min_size=8, max_size=8), min_size=1, max_size=12, unique=True)
NOW = 1_800_000_000_000  # milliseconds


def test_a_newcomer_is_behind_all_and_a_claim_before_all() -> None:
    numbers = [claim_priority(NOW + 5_000), claim_priority(NOW), newcomer_priority(NOW), newcomer_priority(NOW + 5_000)]
    assert numbers == sorted(set(numbers))
    for wall in (0, NOW, 2**53):
        assert 0 < claim_priority(wall) <= newcomer_priority(wall) < 2**31


class Fleet:
    """Sidecars over eight shards, and what Pulsar makes of their claims."""

    def __init__(self, *names: str) -> None:
        self.now = 1_000.0
        self.members = {name: Balance(name, 8) for name in names}
        self.leading = dict.fromkeys(range(8), names[0])
        self.claims: list[tuple[float, int]] = []

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.now += 1
            for name, balance in self.members.items():
                shard = balance.shard_to_claim(self.now, frozenset(self.members), dict(self.leading))
                if shard is not None:
                    self.leading[shard] = name
                    self.claims.append((self.now, shard))

    def share(self, name: str) -> int:
        return list(self.leading.values()).count(name)


def test_those_who_stay_for_a_while_share_the_shards() -> None:
    fleet = Fleet("a", "b")
    fleet.pass_time(STABLE_SECONDS - 1)
    assert not fleet.claims
    fleet.pass_time(60)
    assert (fleet.share("a"), fleet.share("b")) == (4, 4)
    assert len(fleet.claims) == 4, "no term more than has to be"
    times = [at for at, _ in fleet.claims]
    assert all(later - earlier >= CLAIM_SECONDS for earlier, later in pairwise(times))
    fleet.pass_time(1_000)
    assert len(fleet.claims) == 4


def test_nobody_moves_while_others_come_and_go() -> None:
    fleet = Fleet("a", "b")
    for number in range(10):
        fleet.members[f"pod-{number}"] = Balance(f"pod-{number}", 8)
        fleet.pass_time(STABLE_SECONDS - 5)
        del fleet.members[f"pod-{number}"]
        fleet.pass_time(STABLE_SECONDS - 5)
    assert not fleet.claims


def test_nobody_claims_while_a_shard_has_no_leader() -> None:
    balance = Balance("b", 2)
    members = frozenset({"a", "b"})
    for second in range(100):
        assert balance.shard_to_claim(float(second), members, {0: "a"}) is None


def test_a_claim_that_does_not_last_is_not_repeated_at_once() -> None:
    balance = Balance("b", 1)
    members = frozenset({"b"})
    claims = [
        second for second in range(1_000) if balance.shard_to_claim(float(second), members, {0: "unseen"}) is not None
    ]
    assert all(later - earlier >= CLAIM_AGAIN_SECONDS for earlier, later in pairwise(claims))
    assert len(claims) == 4
