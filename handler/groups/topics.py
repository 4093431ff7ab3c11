"""What is known of the topics that consumer groups are subscribed to, and who has to wait until it is."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import re2
from kio.schema.errors import ErrorCode

from handler.groups.consumer.members import InvalidRegex, Topic, Topics
from handler.groups.shard import NotLeading
from handler.pulsar.errors import PulsarError

log = logging.getLogger(__name__)

COMPILED: Final = 256
LEARN_SECONDS: Final = 10.0
AT_ONCE: Final = 8  # so many lookups of a refresh: whoever waits for a topic is not to wait for all


class TopicSource(Protocol):
    """Where topics are looked up. Calls may raise PulsarError."""

    async def describe(self, name: str) -> tuple[uuid.UUID, int] | None: ...
    async def listed(self) -> list[str]: ...


class TopicBook(Topics):
    def __init__(self, source: TopicSource) -> None:
        self._source = source
        self._topics: dict[str, Topic | None] = {}  # None: there is no such topic
        self._names: dict[uuid.UUID, str] = {}
        self._matching: dict[str, frozenset[str]] = {}
        self._doubtful: set[str] = set()  # of which the last answer was that they are gone, or others

    def get(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return self._names.get(topic_id)

    def matching(self, regex: str) -> frozenset[str]:
        _compiled(regex)
        return self._matching.get(regex, frozenset())

    def knows(self, needs: Needs) -> bool:
        return all(name in self._topics for name in needs.names) and all(
            regex in self._matching or not _is_valid(regex) for regex in needs.regexes
        )

    async def learn(self, needs: Needs) -> None:
        """Look up what is not known yet."""
        regexes = [regex for regex in needs.regexes if regex not in self._matching and _is_valid(regex)]
        if regexes:
            await self._match(regexes)
        matched = (self._matching.get(regex, frozenset()) for regex in needs.regexes)
        await self._describe(name for name in needs.names.union(*matched) if name not in self._topics)

    async def refresh(self, needs: Needs) -> None:
        """Look everything up again, and forget what nobody needs. What can't be looked up now stays as it was."""
        if needs.regexes:
            await self._match([regex for regex in needs.regexes if _is_valid(regex)])
        self._matching = {regex: names for regex, names in self._matching.items() if regex in needs.regexes}
        names = needs.names.union(*self._matching.values())
        self._topics = {name: topic for name, topic in self._topics.items() if name in names}
        self._names = {topic.topic_id: name for name, topic in self._topics.items() if topic is not None}
        self._doubtful &= names
        for some in _batches(sorted(names)):
            await self._describe(some)

    async def _match(self, regexes: Iterable[str]) -> None:
        listed = await self._source.listed()
        for regex in regexes:
            self._matching[regex] = await asyncio.to_thread(_match, regex, listed)

    async def _describe(self, names: Iterable[str]) -> None:
        wanted = list(names)
        found = await asyncio.gather(*(self._source.describe(name) for name in wanted), return_exceptions=True)
        failure: BaseException | None = None
        for name, described in zip(wanted, found, strict=True):
            if isinstance(described, BaseException):
                failure = described
            else:
                self._note(name, None if described is None else Topic(*described))
        if failure is not None:
            raise failure

    def _note(self, name: str, topic: Topic | None) -> None:
        """Members give up partitions for what is noted here, so that it has to be said twice that a topic is gone or another."""
        before = self._topics.get(name)
        if before is not None and topic is not None and before.topic_id == topic.topic_id:
            topic = topic._replace(partitions=max(before.partitions, topic.partitions))  # partitions never go
        elif before is not None and name not in self._doubtful:
            self._doubtful.add(name)
            return
        self._doubtful.discard(name)
        if before is not None and self._names.get(before.topic_id) == name:
            del self._names[before.topic_id]
        self._topics[name] = topic
        if topic is not None:
            self._names[topic.topic_id] = name


class Needs(NamedTuple):
    names: frozenset[str]
    regexes: frozenset[str] = frozenset()


def _batches(names: list[str]) -> Iterable[list[str]]:
    return (names[begin : begin + AT_ONCE] for begin in range(0, len(names), AT_ONCE))


def _match(regex: str, names: Collection[str]) -> frozenset[str]:
    compiled = _compiled(regex)
    return frozenset(name for name in names if compiled.fullmatch(name))


def _is_valid(regex: str) -> bool:
    try:
        _compiled(regex)
    except InvalidRegex:
        return False
    return True


@lru_cache(maxsize=COMPILED)
def _compiled(regex: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise InvalidRegex(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error


class _Held(NamedTuple):
    needs: Callable[[], Needs]
    go: Callable[[], None]
    refuse: Callable[[ErrorCode], None]


class Informed:
    """Calls about a group that go on when what they need of topics is known, in the order in which they came."""

    def __init__(self, book: TopicBook) -> None:
        self._book = book
        self._queues: dict[str, deque[_Held]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def when_known(
        self, group_id: str, needs: Callable[[], Needs], go: Callable[[], None], refuse: Callable[[ErrorCode], None]
    ) -> None:  # fmt: skip
        """Call `go`, now if nothing is to be waited for. It and `needs` may raise NotLeading."""
        queue = self._queues.get(group_id)
        if queue is None:
            if self._book.knows(needs()):
                go()
                return
            queue = self._queues[group_id] = deque()
            task = asyncio.create_task(self._work(group_id, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        queue.append(_Held(needs, go, refuse))

    async def _work(self, group_id: str, queue: deque[_Held]) -> None:
        try:
            while queue:
                await self._first(group_id, queue[0])
                queue.popleft()
        finally:
            del self._queues[group_id]
            for held in queue:
                held.refuse(ErrorCode.not_coordinator)

    async def _first(self, group_id: str, held: _Held) -> None:
        try:
            async with asyncio.timeout(LEARN_SECONDS):
                while not self._book.knows(needs := held.needs()):
                    await self._book.learn(needs)
            held.go()
        except NotLeading as refused:
            held.refuse(refused.error)
        except (PulsarError, TimeoutError) as error:
            log.info("the topics of group %s can't be looked up: %s", group_id, error)
            held.refuse(ErrorCode.coordinator_load_in_progress)  # clients ask again
        except Exception:
            log.exception("a request of group %s failed", group_id)
            held.refuse(ErrorCode.unknown_server_error)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
