"""The server-side assignors of Kafka's brokers, `uniform` and `range`.

Both are given the members in a fixed order and are deterministic.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from kafka_sidecar.groups.records.consumer import Assignment

# Limit of balancing rounds. Balancing one set of topics may unbalance another set that shares members with it. This
# converges, and the limit guarantees that it ends.
MAX_ROUNDS: Final = 16

TopicPartition = tuple[uuid.UUID, int]


class Subscriber(NamedTuple):
    topics: frozenset[uuid.UUID]
    target: Assignment  # the member's target assignment in the previous epoch


Members = Mapping[str, Subscriber]
Counts = Mapping[uuid.UUID, int]  # number of partitions by topic id
Assignor = Callable[[Members, Counts], dict[str, Assignment]]


def uniform(members: Members, counts: Counts) -> dict[str, Assignment]:
    """As even as the subscriptions allow, moving no partition that need not move."""
    return _Uniform(members, counts).assign()


def range_(members: Members, counts: Counts) -> dict[str, Assignment]:
    """Of each topic a run of partitions for each subscriber, so that topics with as many partitions are joined by
    partition.
    """
    parts: dict[str, dict[uuid.UUID, frozenset[int]]] = {member: {} for member in members}
    for topic_id, count in sorted(counts.items()):
        subscribers = [member for member, subscriber in members.items() if topic_id in subscriber.topics]
        begin = 0
        for place, member in enumerate(subscribers):
            size = count // len(subscribers) + (place < count % len(subscribers))
            if size:
                parts[member][topic_id] = frozenset(range(begin, begin + size))
            begin += size
    return dict(parts)


ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": uniform, "range": range_}
DEFAULT: Final = "uniform"


class _Pool:
    """Topics that the same members are subscribed to, and what each member has of them."""

    def __init__(self, members: list[str]) -> None:
        self.members = members
        self.topics: list[uuid.UUID] = []
        self.parts: dict[str, dict[uuid.UUID, set[int]]] = {member: {} for member in members}


class _Uniform:
    def __init__(self, members: Members, counts: Counts) -> None:
        self._members = members
        self._counts = counts
        self._load = dict.fromkeys(members, 0)
        self._pools = _pools(members, counts)

    def assign(self) -> dict[str, Assignment]:
        for pool in self._pools:
            free = self._keep(pool)
            self._hand_out(pool, free)
        for _ in range(MAX_ROUNDS):
            if not any([self._balance(pool) for pool in self._pools]):
                break
        return self._assignments()

    def _keep(self, pool: _Pool) -> list[TopicPartition]:
        """Everybody keeps what it had; what nobody had is free."""
        free = {topic_id: set(range(self._counts[topic_id])) for topic_id in pool.topics}
        for member in pool.members:
            for topic_id, indexes in self._members[member].target.items():
                kept = free[topic_id] & indexes if topic_id in free else None
                if kept:
                    free[topic_id] -= kept
                    pool.parts[member][topic_id] = kept
                    self._load[member] += len(kept)
        return [(topic_id, index) for topic_id in pool.topics for index in sorted(free[topic_id])]

    def _hand_out(self, pool: _Pool, free: Iterable[TopicPartition]) -> None:
        """One after the other, so that neighbours of one topic go to different members."""
        lightest = [(self._load[member], order, member) for order, member in enumerate(pool.members)]
        heapq.heapify(lightest)
        for topic_id, index in free:
            load, order, member = lightest[0]
            pool.parts[member].setdefault(topic_id, set()).add(index)
            self._load[member] += 1
            heapq.heapreplace(lightest, (load + 1, order, member))

    def _balance(self, pool: _Pool) -> bool:
        """Move partitions of the pool from those who have most to those who have least. True if any was moved."""
        lightest = [(self._load[member], order, member) for order, member in enumerate(pool.members)]
        heaviest = [
            (-self._load[member], order, member) for order, member in enumerate(pool.members) if pool.parts[member]
        ]
        heapq.heapify(lightest)
        heapq.heapify(heaviest)
        moved = False
        while heaviest:
            load, order, rich = heaviest[0]
            if -load != self._load[rich] or not pool.parts[rich]:
                heapq.heappop(heaviest)
                continue
            low, low_order, poor = lightest[0]
            if low != self._load[poor]:
                heapq.heapreplace(lightest, (self._load[poor], low_order, poor))
                continue
            if -load - low <= 1:
                break
            self._move(pool, rich, poor)
            moved = True
            heapq.heapreplace(heaviest, (load + 1, order, rich))
            heapq.heapreplace(lightest, (low + 1, low_order, poor))
        return moved

    def _move(self, pool: _Pool, rich: str, poor: str) -> None:
        """The last partition of the topic that it has most partitions of."""
        parts = pool.parts[rich]
        topic_id = max(parts, key=lambda topic: (len(parts[topic]), topic))
        index = max(parts[topic_id])
        parts[topic_id].discard(index)
        if not parts[topic_id]:
            del parts[topic_id]
        pool.parts[poor].setdefault(topic_id, set()).add(index)
        self._load[rich] -= 1
        self._load[poor] += 1

    def _assignments(self) -> dict[str, Assignment]:
        found: dict[str, dict[uuid.UUID, frozenset[int]]] = {member: {} for member in self._members}
        for pool in self._pools:
            for member, parts in pool.parts.items():
                for topic_id, indexes in parts.items():
                    found[member][topic_id] = frozenset(indexes)
        return dict(found)


def _pools(members: Members, counts: Counts) -> list[_Pool]:
    """The topics by their subscribers; those with the fewest first, for these have the least choice."""
    kinds: dict[frozenset[uuid.UUID], list[str]] = {}
    for member, subscriber in members.items():
        kinds.setdefault(subscriber.topics, []).append(member)
    listed = list(kinds.items())
    pools: dict[frozenset[int], _Pool] = {}
    order = {member: place for place, member in enumerate(members)}
    for topic_id in sorted(counts):
        subscribed = frozenset(kind for kind, (topics, _) in enumerate(listed) if topic_id in topics)
        if not subscribed:
            continue
        if subscribed not in pools:
            pools[subscribed] = _Pool(
                sorted((member for kind in subscribed for member in listed[kind][1]), key=order.__getitem__)
            )
        pools[subscribed].topics.append(topic_id)
    return sorted(pools.values(), key=lambda pool: len(pool.members))
