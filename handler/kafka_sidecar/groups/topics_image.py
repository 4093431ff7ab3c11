"""The topics that consumer groups are subscribed to, as they were last looked up."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, Protocol

import re2

from kafka_sidecar.groups.consumer.members import InvalidRegex, RequiredTopics, Topic, Topics
from kafka_sidecar.loop.waiting import gathered, in_a_thread
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, Undescribed

# Limit of cached compiled regular expressions: each group has only a few.
COMPILED: Final = 256
# Lookups that a refresh makes at once, so that a request for one topic does not wait for all of them.
AT_ONCE: Final = 8


class TopicSource(Protocol):
    """Where topics are looked up. Calls may raise PulsarError."""

    async def describe(self, name: str) -> tuple[uuid.UUID, int] | None: ...

    def is_lost(self, name: str) -> bool:
        """Of a topic that could not be described just now."""
        ...

    def scope_of(self, expression: str) -> tuple[str, str]:
        """The namespace whose topics a regular expression is about, and the expression that they have to match."""
        ...

    async def listed(self, namespace: str) -> Mapping[str, str]:
        """The names of all topics that are seen from a namespace, by the text that has to match."""
        ...


class TopicsImage(Topics):
    def __init__(self, source: TopicSource) -> None:
        self._source = source
        self._topics: dict[str, Topic | None] = {}  # None: there is no such topic
        self._names: dict[uuid.UUID, str] = {}
        self._matching: dict[str, frozenset[str]] = {}
        # Topics that the last lookup reported as deleted or recreated; the next lookup must confirm it.
        self._doubtful: set[str] = set()
        self._version = 0

    @property
    def version(self) -> int:
        return self._version

    def get(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return self._names.get(topic_id)

    def matching(self, regex: str) -> frozenset[str]:
        _compiled(self._source.scope_of(regex)[1])
        return self._matching.get(regex, frozenset())

    def knows(self, required: RequiredTopics) -> bool:
        """Whether all of it was looked up, with what the regular expressions match."""
        if any(regex not in self._matching and self._is_valid(regex) for regex in required.regexes):
            return False
        return all(
            name in self._topics
            for names in (required.names, *map(self.matching, filter(self._is_valid, required.regexes)))
            for name in names
        )

    async def learn(self, required: RequiredTopics) -> None:
        """Look up what is not known yet."""
        regexes = [regex for regex in required.regexes if regex not in self._matching and self._is_valid(regex)]
        if regexes:
            await self._match(regexes)
        matched = (self._matching.get(regex, frozenset()) for regex in required.regexes)
        failure = await self._describe(name for name in required.names.union(*matched) if name not in self._topics)
        if failure is not None:
            raise failure

    async def refresh(self, required: Callable[[], RequiredTopics]) -> None:
        """Look everything up again, and forget unneeded topics. A topic that can't be looked up now stays as it was."""
        failure: PulsarError | None = None
        try:
            await self._match([regex for regex in required().regexes if self._is_valid(regex)])
        except PulsarError as error:
            failure = error
        names = self._forget_all_but(required())
        for begin in range(0, len(names), AT_ONCE):
            failure = await self._describe(names[begin : begin + AT_ONCE]) or failure
        if failure is not None:
            raise failure

    def _forget_all_but(self, required: RequiredTopics) -> list[str]:
        """The names that are kept. Nothing may be waited for since `required` was called: somebody may need more by
        then.
        """
        self._matching = {regex: names for regex, names in self._matching.items() if regex in required.regexes}
        kept = required.names.union(*self._matching.values())
        self._topics = {name: topic for name, topic in self._topics.items() if name in kept}
        self._names = {topic.topic_id: name for name, topic in self._topics.items() if topic is not None}
        self._doubtful &= kept
        self._version += 1
        return sorted(kept)

    def gone(self, is_gone: Callable[[str], bool]) -> None:
        """These topics were deleted: that is certain."""
        for name in [name for name, topic in self._topics.items() if topic is not None and is_gone(name)]:
            self._doubtful.add(name)
            self._note(name, None)

    async def _match(self, regexes: Iterable[str]) -> None:
        scopes = {regex: self._source.scope_of(regex) for regex in regexes}
        listed = {
            namespace: await self._source.listed(namespace)
            for namespace in {namespace for namespace, _ in scopes.values()}
        }
        for regex, (namespace, pattern) in scopes.items():
            self._matching[regex] = await in_a_thread(partial(_match, pattern, listed[namespace]))

    def _is_valid(self, regex: str) -> bool:
        try:
            _compiled(self._source.scope_of(regex)[1])
        except InvalidRegex:
            return False
        return True

    async def _describe(self, names: Iterable[str]) -> PulsarError | None:
        """Look topics up, and note each at once. The last of what went wrong."""
        failures = await gathered(map(self._describe_one, names))
        return next((failure for failure in failures if failure is not None), None)

    async def _describe_one(self, name: str) -> PulsarError | None:
        try:
            described = await self._source.describe(name)
        except (NotPermitted, Refused):  # a topic that this role may not see counts as missing
            described = None
        except Undescribed as error:
            if name in self._topics or not self._source.is_lost(name):
                return error
            described = None  # the group does not wait for a lost topic; a refresh finds the topic when it is back
        except PulsarError as error:
            return error
        self._note(name, None if described is None else Topic(*described))
        return None

    def _note(self, name: str, topic: Topic | None) -> None:
        """Members give up partitions for what is noted here, so that it has to be said twice that a topic is gone or
        another.
        """
        before = self._topics.get(name)
        if before is not None and topic is not None and before.topic_id == topic.topic_id:
            # The number of partitions never decreases.
            topic = topic._replace(partitions=max(before.partitions, topic.partitions))
        elif before is not None and name not in self._doubtful:
            self._doubtful.add(name)
            return
        self._doubtful.discard(name)
        if topic == before and name in self._topics:
            return
        self._version += 1
        if before is not None and self._names.get(before.topic_id) == name:
            del self._names[before.topic_id]
        self._topics[name] = topic
        if topic is not None:
            self._names[topic.topic_id] = name


def _match(pattern: str, names: Mapping[str, str]) -> frozenset[str]:
    compiled = _compiled(pattern)
    return frozenset(name for text, name in names.items() if compiled.fullmatch(text))


@lru_cache(maxsize=COMPILED)
def _compiled(regex: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise InvalidRegex(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error
