"""The namespace whose topics have short names in the records of a shard.

Sidecars of several `kafka.namespace` may share an internal topic, and `orders` is another topic for each of them. So
the log of a shard says once what a short name means there: its first leader writes its own namespace. A later leader
with another one translates what it reads and writes. Sidecars of one namespace have the records that they always had.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, Self

# So many topics' names are translated once.
MOST_TRANSLATED: Final = 50_000


class Names(Protocol):
    """The names that sidecars of one namespace have for topics."""

    @property
    def default_namespace(self) -> str: ...
    def of(self, namespace: str) -> Self: ...
    def translated(self, name: str, to: Self) -> str: ...
    def translated_expression(self, expression: str, to: Self) -> str: ...


class Translation(NamedTuple):
    name: Callable[[str], str]  # of a topic
    expression: Callable[[str], str]  # a regular expression for such names


# Whose topics a log names which says nothing of short names: a namespace. May raise PulsarError.
Whose = Callable[[Mapping[str, uuid.UUID | None]], Awaitable[str]]


class Home:
    def __init__(self, own: Names, whose: Whose) -> None:
        self._own = own
        self.whose = whose
        self.namespace = own.default_namespace  # as long as the log has not said another
        self.to_stored: Translation | None = None  # None: the names are the same
        self.to_own: Translation | None = None

    def learn(self, namespace: str) -> None:
        """What the log says."""
        home = self._own.of(namespace)
        self.namespace = home.default_namespace
        if self.namespace == self._own.default_namespace:
            self.to_stored = self.to_own = None
        else:
            self.to_stored, self.to_own = _translation(self._own, home), _translation(home, self._own)


def _translation(names: Names, to: Names) -> Translation:
    remembered = lru_cache(MOST_TRANSLATED)
    return Translation(
        remembered(lambda name: names.translated(name, to)),
        remembered(lambda one: names.translated_expression(one, to)),
    )
