"""The subscriptions of a consumer group's members: the topics they name or match, and the target assignment."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from kafka_sidecar.groups.consumer.assignors import ASSIGNORS, DEFAULT, Subscriber
from kafka_sidecar.groups.consumer.group_state import GroupState
from kafka_sidecar.groups.consumer.members import NO_PARTITIONS, ConsumerMember, InvalidRegex, RequiredTopics, Topics
from kafka_sidecar.groups.records.consumer import Assignment, RegularExpressionValue

# Topic names that match a regular expression are stored only below 1,000,000 bytes in total, since a record holds no
# more. Otherwise each term resolves the expression again.
STORED_NAMES_BYTES: Final = 1_000_000

# Subscribed topic names, and the names that match the regular expression.
Subscription = tuple[tuple[str, ...], frozenset[str]]


class Subscriptions:
    def __init__(self, group_state: GroupState, topics: Topics) -> None:
        self.topics = topics
        self._group_state = group_state
        self._ids: dict[Subscription, dict[uuid.UUID, str]] = {}
        self._ids_of = -1  # version of the topics image from which `_ids` was made

    @property
    def names(self) -> frozenset[str]:
        subscriptions = {
            member.metadata.topics for member in self._group_state.members.values()
        }  # members have few different subscriptions, even in a large group
        return frozenset[str]().union(
            *subscriptions, *(resolved.topics for resolved in self._group_state.regexes.values())
        )

    @property
    def regexes(self) -> frozenset[str]:
        return frozenset(
            member.metadata.regex for member in self._group_state.members.values() if member.metadata.regex
        )

    @property
    def required_topics(self) -> RequiredTopics:
        return RequiredTopics(self.names, self.regexes)

    @property
    def are_known(self) -> bool:
        """Whether all about their topics is known. Before, nobody is to lose a partition for what seems not to be
        there.
        """
        return self.topics.knows(self.required_topics)

    @property
    def assignor(self) -> str:
        """The one that most members ask for."""
        votes = Counter(
            member.metadata.assignor
            for member in self._group_state.members.values()
            if member.metadata.assignor is not None
        )
        return votes.most_common(1)[0][0] if votes else DEFAULT

    def resolve(self, wall: int) -> None:
        """Bring what the regular expressions match up to date."""
        wanted = self.regexes
        for regex in self._group_state.regexes.keys() - wanted:
            self._group_state.remove_regex(regex)
        for regex in sorted(wanted):
            known = self._group_state.regexes.get(regex)
            matching = self._matching(regex)
            if known is None or known.topics != matching:
                store = sum(len(name) for name in matching) < STORED_NAMES_BYTES
                self._group_state.set_regex(regex, RegularExpressionValue(matching, 0, wall), store=store)

    def _matching(self, regex: str) -> frozenset[str]:
        try:
            return self.topics.matching(regex)
        except InvalidRegex:  # another coordinator accepted this expression and stored it
            return frozenset()

    def metadata_hash(self) -> int:
        """A hash of all that the group is assigned by: members, what they subscribe to, topics. Never 0."""
        topics = sorted((name, *topic) for name in self.names if (topic := self.topics.get(name)) is not None)
        digest = hashlib.blake2b(repr((topics, self._group_state.members_hash)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, signed=True) or 1

    def _in_order(self) -> list[ConsumerMember]:
        """Static members by their instance, so that they get the same when they come back."""
        members = self._group_state.members.values()
        return sorted(
            members, key=lambda one: (one.metadata.instance_id is None, one.metadata.instance_id or one.member_id)
        )

    def topic_ids(self, member: ConsumerMember) -> Mapping[uuid.UUID, str]:
        """The topics that a member is subscribed to and that are there, by the names under which it knows them."""
        if self._ids_of != self.topics.version:
            self._ids, self._ids_of = {}, self.topics.version
        resolved = self._group_state.regexes.get(member.metadata.regex or "")
        subscription = member.metadata.topics, frozenset() if resolved is None else resolved.topics
        found = self._ids.get(subscription)
        if found is None:
            names = sorted({*subscription[0], *subscription[1]})
            found = {topic.topic_id: name for name in names if (topic := self.topics.get(name)) is not None}
            if len(self._ids) > len(self._group_state.members):
                self._ids.clear()
            self._ids[subscription] = found
        return found

    def named(self, member: ConsumerMember, assignment: Assignment) -> dict[str, frozenset[int]]:
        names = self.topic_ids(member)
        return {names[topic_id]: indexes for topic_id, indexes in assignment.items() if topic_id in names}

    def assign(self, epoch: int) -> None:
        """The target of an epoch."""
        counts = {
            topic.topic_id: topic.partitions for name in self.names if (topic := self.topics.get(name)) is not None
        }
        order = self._in_order()
        topic_ids = {_key(member): frozenset(self.topic_ids(member)) for member in _one_of_each(order)}
        members = {
            member.member_id: Subscriber(
                topic_ids[_key(member)], self._group_state.targets.get(member.member_id, NO_PARTITIONS)
            )
            for member in order
        }
        for member_id, assignment in ASSIGNORS[self.assignor](members, counts).items():
            self._group_state.set_target(member_id, assignment)
        self._group_state.set_target_epoch(epoch)


def _key(member: ConsumerMember) -> tuple[tuple[str, ...], str | None]:
    return member.metadata.topics, member.metadata.regex


def _one_of_each(members: Iterable[ConsumerMember]) -> Iterable[ConsumerMember]:
    """One member of each subscription."""
    return {_key(member): member for member in members}.values()
