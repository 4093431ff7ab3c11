"""Values that sidecars have kept of one partition. Each has a key of its own, which tells what the value covers.

    KIND:PARTITION \\0 BEGAN:LAST:ID

A value whose ID begins with `+` tells more than the log: what its sidecar knows from elsewhere. A sidecar takes
that over before it deletes the value.

No value is ever replaced, so it does not matter how late one lands: a sidecar that stood still, or a connection that
was cut, may bring one after others have gone on. A sidecar that has stored a value deletes those that this one covers.
It deletes no other but one that contradicts the log, or that retention has made useless.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.internal_topics.snapshot_places import Kept
from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.byte_rate import ByteRate
from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.pulsar.entry import Position

# The number of values that a sidecar remembers for one partition. A store that has failed may have landed, so its value
# is remembered too. The next sidecar that looks deletes the values that this one has forgotten.
MOST_REMEMBERED: Final = 64
_TELLS_MORE: Final = b"+"


@dataclass(frozen=True, slots=True)
class _Stored:
    key: bytes
    extent: Extent
    # `times_remade` of the topic before the store; while that is unchanged, the value is there for certain.
    times_remade: int


class SnapshotValues:
    def __init__(self, kind: bytes, name: str, states: SnapshotTopic) -> None:
        # The part of the key before the zero byte selects the partition of `__kept_states`, so all keys of one log are
        # stored together.
        self._prefix = b"%b:%b\0" % (kind, name.encode())
        self._states = states
        self._known: dict[bytes, Extent] = {}  # Values that this sidecar has found or stored
        self._own: set[bytes] = set()
        self._stored: _Stored | None = None  # what this sidecar has stored last
        self._passed_over: set[bytes] = (
            set()
        )  # Unusable values that are still stored; a forgotten one would be found again at each lookup
        self._gone: set[bytes] = set()  # Those of them that no other sidecar can use either

    @property
    def rate(self) -> ByteRate:
        """For what is kept again and again."""
        return self._states.rate

    @property
    def times_remade(self) -> int:
        """Once more means that what was stored is gone with its topic."""
        return self._states.times_remade(self._prefix)

    async def surest(self) -> tuple[bytes, Extent] | None:
        """The one that began earliest; of several, the one that ends last. May raise PulsarError."""
        return _surest(await self._there())

    async def ends_last(self, *, from_the_start: bool = False) -> tuple[bytes, Extent] | None:
        """The one that ends last, of all or of those alone that began at the start of the log. Raises PulsarError
        likewise.
        """
        those = {
            key: extent for key, extent in (await self._there()).items() if extent.began is None or not from_the_start
        }
        return max(those.items(), key=lambda one: (one[1].last, one[0]), default=None)

    async def surest_ends_last(self) -> bool:
        """Whether no other value, of use here or not, tells of entries behind it. Raises PulsarError likewise."""
        all_there = await self._all_there()
        surest = _surest({key: extent for key, extent in all_there.items() if key not in self._passed_over})
        return surest is None or all(extent.last <= surest[1].last for extent in all_there.values())

    @property
    def key_of_0_2(self) -> bytes:
        """Under which sidecars of that release keep theirs, each over that of the one before."""
        return self._prefix.rstrip(b"\0")

    def is_passed_over(self, key: bytes) -> bool:
        return key in self._passed_over

    async def value(self, key: bytes) -> Kept | None:
        """None where it was deleted meanwhile, or parts of it are missing. Raises PulsarError."""
        found = await self._states.look_up(key)
        return found if found is not None and found.value else None

    async def store(self, extent: Extent, value: bytes, *, tells_more: bool = False) -> None:
        """`tells_more`: than the log. Raises PulsarError where it is not stored, or nobody can tell."""
        key = (
            self._prefix
            + extent_text(extent)
            + b":"
            + (_TELLS_MORE if tells_more else b"")
            + self._states.new_id().encode()
        )
        self._known[key] = extent  # From here on the value may be in Pulsar, even if the store fails
        self._own.add(key)
        while len(self._known) > MOST_REMEMBERED:
            self._forget(next(iter(self._known)))
        times_remade = self.times_remade
        await self._states.store(key, value)
        self._stored = _Stored(key, extent, times_remade)

    def of_others_that_tell_more(self) -> list[bytes]:
        """The keys of those that were there when this sidecar looked last."""
        return [
            key
            for key, extent in self._known.items()
            if key not in self._own and _id_of(key, extent).startswith(_TELLS_MORE)
        ]

    async def delete_covered(self, spared: Collection[bytes] = ()) -> None:
        """What the value covers that this sidecar has stored last. Raises PulsarError."""
        stored = self._stored
        if stored is not None and stored.times_remade == self.times_remade:
            covered = [key for key, extent in self._known.items() if self._gives_way(key, extent, stored)]
            await self.delete([key for key in (*self._gone, *covered) if key not in spared])

    def _gives_way(self, key: bytes, extent: Extent, stored: _Stored) -> bool:
        """Where two values tell the same, the one with the greater key stays. Else two sidecars would delete each
        other's.
        """
        if key == stored.key or not stored.extent.covers(extent):
            return False
        return extent != stored.extent or key in self._own or key < stored.key

    def pass_over(self, key: bytes, *, is_gone: bool) -> None:
        """Use this one no more. `is_gone`: no sidecar can use it, so it is deleted when another is stored."""
        self._passed_over.add(key)
        self._forget(key)
        if is_gone:
            self._gone.add(key)

    def pass_over_own(self) -> list[bytes]:
        """Use nothing more of what this sidecar has stored. The keys of that."""
        own, self._stored = list(self._own), None
        for key in own:
            self.pass_over(key, is_gone=False)
        return own

    async def delete(self, keys: list[bytes]) -> None:
        """Raises PulsarError."""
        for key in keys:
            await self._states.store(key, b"")
            self._forget(key)
            self._gone.discard(key)

    async def _there(self) -> dict[bytes, Extent]:
        there = {key: extent for key, extent in (await self._all_there()).items() if key not in self._passed_over}
        own = {key: extent for key, extent in self._known.items() if key in self._own}
        self._known = own | there
        return there

    async def _all_there(self) -> dict[bytes, Extent]:
        names = await self._states.names(self._prefix)
        self._passed_over.intersection_update((*names, self.key_of_0_2))
        extents = {key: extent_in(key) for key in names}
        return {key: extent for key, extent in extents.items() if extent is not None}

    def _forget(self, key: bytes) -> None:
        self._known.pop(key, None)
        self._own.discard(key)


def _surest(values: dict[bytes, Extent]) -> tuple[bytes, Extent] | None:
    earliest = [one for one in values.items() if not any(other.began_earlier(one[1]) for other in values.values())]
    return max(earliest, key=lambda one: (one[1].last, one[0]), default=None)


def extent_text(extent: Extent) -> bytes:
    """As it stands in a key."""
    began = b"" if extent.began is None else b"%d.%d" % extent.began
    return b"%b:%d.%d" % (began, *extent.last)


def extent_in(key: bytes) -> Extent | None:
    """None where it is not as `extent_text` writes it: anybody may have made the key."""
    try:
        began, last, _ = key.partition(b"\0")[2].split(b":", 2)
        return Extent(_position(began) if began else None, _position(last))
    except ValueError:
        return None


def _id_of(key: bytes, extent: Extent) -> bytes:
    return key.partition(b"\0")[2].removeprefix(extent_text(extent) + b":")


def _position(written: bytes) -> Position:
    ledger, entry = written.split(b".")
    return Position(int(ledger), int(entry))
