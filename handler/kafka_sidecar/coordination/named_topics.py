"""What short names mean in a log that does not say so, for no sidecar of 0.3.0 has led it yet.

A team adds its first sidecar while the other team's are being upgraded, and leads a shard first. So a log is taken for
that of the namespace which has most of the topics that it names. Ids are the best signs of that: both namespaces may
have topics of the same name.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from kafka_sidecar.coordination.home import Names
from kafka_sidecar.loop.waiting import gathered
from kafka_sidecar.pulsar.errors import NotPermitted

# The last that were read: of these some are still there.
MOST_TOPICS: Final = 100
# The id of a topic that is there now. May raise PulsarError, and NotPermitted where Pulsar says nothing of it.
IdOf = Callable[[str], Awaitable[uuid.UUID | None]]


class NamedTopics:
    """The topics of short names in records, with their ids where records say these."""

    def __init__(self) -> None:
        self.ids: dict[str, uuid.UUID | None] = {}

    def note(self, topics: Iterable[tuple[str, uuid.UUID | None]]) -> None:
        for name, topic_id in topics:
            if "/" in name:
                continue
            before = self.ids.pop(name, None)
            self.ids[name] = topic_id or before
            if len(self.ids) > MOST_TOPICS:
                del self.ids[next(iter(self.ids))]


async def namespace_of(topics: Mapping[str, uuid.UUID | None], own: Names, others: Iterable[str], id_of: IdOf) -> str:
    """The namespace among these whose topics they are; where nothing speaks for another one, the own. May raise
    PulsarError.

    Pulsar may refuse to show this sidecar another team's topics. If exactly one namespace is refused, and no id is of
    an own topic, the topics are taken for those of that namespace.
    """
    best, most, refused = own.default_namespace, (0, 0), []
    for namespace in (own.default_namespace, *others):
        try:
            found = await _found(topics, own, own.of(namespace), id_of)
        except NotPermitted:
            refused.append(namespace)
            continue
        if found > most:
            best, most = namespace, found
    has_ids = any(topic_id is not None for topic_id in topics.values())
    return refused[0] if has_ids and not most[0] and len(refused) == 1 else best


async def _found(topics: Mapping[str, uuid.UUID | None], own: Names, theirs: Names, id_of: IdOf) -> tuple[int, int]:
    """How many of the topics a namespace has: by their ids, and by name alone."""
    current = await gathered(id_of(theirs.translated(name, own)) for name in topics)
    same = sum(topic_id is not None and topic_id == now for topic_id, now in zip(topics.values(), current, strict=True))
    named = sum(topic_id is None and now is not None for topic_id, now in zip(topics.values(), current, strict=True))
    return same, named
