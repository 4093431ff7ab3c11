"""The unusual names that members of groups use for topics. This sidecar remembers them from JoinGroup to SyncGroup.

A client takes no partition of a topic under a name that it has not used. If a client subscribes to
`tenant/namespace/t`, its assignment names that. If a member has written a short name, where others write full ones, the
leader's assignment for that member has the short name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import chain
from sys import getsizeof
from types import MappingProxyType
from typing import Final, NamedTuple

# Of all members together: about 50,000 short names. A name may have 770 bytes.
MOST_BYTES: Final = 16 * 1024 * 1024
BYTES_OF_A_NAME: Final = 200  # beside the name itself
# What one member would take for itself at the expense of all others is not remembered.
LARGEST_SHARE: Final = 0.25

Forms = Mapping[str, str]  # a client's name of a topic, by the full one


class Joined(NamedTuple):
    """Of one member."""

    forms: Forms = MappingProxyType({})
    in_short: Mapping[str, frozenset[str]] = MappingProxyType(
        {}
    )  # what members have named in short, if it is the leader


class RememberedForms:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._joined: OrderedDict[tuple[str, str], Joined] = OrderedDict()  # by group and member
        self._size = 0

    def remember(self, group: str, member: str, joined: Joined) -> None:
        """In place of what is known of the member. Those that have not joined for longest are forgotten where there is
        no more room.
        """
        at = group, member
        if at in self._joined:
            self._size -= _size_of(at, self._joined.pop(at))
        size = _size_of(at, joined)
        if (joined.forms or joined.in_short) and size <= self._most_bytes * LARGEST_SHARE:
            self._joined[at] = joined
            self._size += size
        while self._size > self._most_bytes:
            self._size -= _size_of(*self._joined.popitem(last=False))

    def of(self, group: str, member: str) -> Joined:
        return self._joined.get((group, member), Joined())


def _size_of(at: tuple[str, str], joined: Joined) -> int:
    """About how many bytes it takes."""
    names = chain(at, joined.forms.keys(), joined.forms.values(), joined.in_short.keys(), *joined.in_short.values())
    return sum([BYTES_OF_A_NAME + getsizeof(name) for name in names])
