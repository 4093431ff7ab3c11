"""What clients of this sidecar have said, or were told, when they joined a group, as far as it is not the usual.

A client takes no partition of a topic that it has not named: who subscribes to `tenant/namespace/t` is to be given that. And a member that
has named topics in short, at a sidecar of an older release, is to be given short names.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

MOST_MEMBERS: Final = 1_000

Forms = Mapping[str, str]  # a client's name of a topic, by the full one


class Joined(NamedTuple):
    """Of one member."""

    forms: Forms = MappingProxyType({})
    in_short: frozenset[str] = frozenset()  # the members that have named topics in short, if it is the leader


class RememberedForms:
    def __init__(self) -> None:
        self._joined: OrderedDict[tuple[str, str], Joined] = OrderedDict()  # by group and member

    def remember(self, group: str, member: str, joined: Joined) -> None:
        self._joined.pop((group, member), None)
        if any(joined):
            self._joined[group, member] = joined
            if len(self._joined) > MOST_MEMBERS:
                self._joined.popitem(last=False)

    def of(self, group: str, member: str) -> Joined:
        return self._joined.get((group, member), Joined())
