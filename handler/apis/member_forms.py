"""What clients of this sidecar have said, or were told, when they joined a group, as far as it is not the usual.

A client takes no partition of a topic that it has not named: who subscribes to `tenant/namespace/t` is to be given that. And a member that
has named a topic in short, at a sidecar of an older release, is to be given the short name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

# Of all members together: some 10 MB.
MOST_NAMES: Final = 50_000

Forms = Mapping[str, str]  # a client's name of a topic, by the full one


class Joined(NamedTuple):
    """Of one member."""

    forms: Forms = MappingProxyType({})
    in_short: Mapping[str, frozenset[str]] = MappingProxyType({})  # what members have named in short, if it is the leader

    @property
    def size(self) -> int:
        return len(self.forms) + sum(map(len, self.in_short.values()))


class RememberedForms:
    def __init__(self) -> None:
        self._joined: OrderedDict[tuple[str, str], Joined] = OrderedDict()  # by group and member
        self._size = 0

    def remember(self, group: str, member: str, joined: Joined) -> None:
        self._size -= self._joined.pop((group, member), Joined()).size
        if joined.size:
            self._joined[group, member] = joined
            self._size += joined.size
        while self._size > MOST_NAMES:
            _, oldest = self._joined.popitem(last=False)
            self._size -= oldest.size

    def of(self, group: str, member: str) -> Joined:
        return self._joined.get((group, member), Joined())
