"""Which of the other sidecars are advertised, and which of these lead partitions.

The directory introduces a sidecar, its answers to pings keep it. So a Pulsar that has just restarted, and knows nobody
for a moment, ends no fleet. One that leaves stays a node for as long as it answers: clients give up what is in flight
to a node that Metadata no longer names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

# A sidecar counts as gone after 3 unanswered pings in a row. Pings are counted instead of timed: a sidecar that was
# paused would otherwise take all others for gone.
SILENT_PINGS: Final = 3
# A member that was silent leads again after 10 answered pings. Otherwise leaders would move with each failure of an
# unstable host.
STEADY_ANSWERS: Final = 10


@dataclass(slots=True)
class _Other:
    has_answered: bool = False
    was_asked_in_vain: bool = False
    serves: bool = True  # whether the sidecar says that it serves and leads; True until it first answers
    unanswered: int = 0
    answers: int = STEADY_ANSWERS  # answered pings since the sidecar was last silent


class Liveness:
    def __init__(self) -> None:
        self._others: dict[str, _Other] = {}
        # The members that each other sidecar reports as silent, or as no longer listed by Pulsar.
        self._called_silent: dict[str, frozenset[str]] = {}
        self._called_missing: dict[str, frozenset[str]] = {}

    def listed(self, names: Collection[str], silent: Collection[str] = ()) -> None:
        """The directory, as it is now; `silent` have no control port that could be asked."""
        for name in names:
            self._others.setdefault(name, _Other(was_asked_in_vain=name in silent))
        for name, other in list(self._others.items()):
            if name not in names and (other.unanswered >= SILENT_PINGS or not other.has_answered):
                del self._others[name]
                self._called_silent.pop(name, None)
                self._called_missing.pop(name, None)

    def answered(self, name: str, *, serves: bool, silent: Collection[str] = (), missing: Collection[str] = ()) -> None:
        other = self._others.get(name)
        if other is not None:
            other.has_answered, other.serves, other.unanswered = True, serves, 0
            other.answers += 1
            self._called_silent[name] = frozenset(silent)
            self._called_missing[name] = frozenset(missing)

    def heard(self, name: str, *, serves: bool) -> None:
        """It has sent a ping of its own."""
        other = self._others.get(name)
        if other is not None:
            other.serves, other.unanswered = serves, 0

    def unanswered(self, name: str) -> None:
        other = self._others.get(name)
        if other is not None:
            other.unanswered += 1
            other.was_asked_in_vain = True
            if other.unanswered >= SILENT_PINGS:
                other.answers = 0

    @property
    def silent(self) -> list[str]:
        """Those that had answered and do not any more."""
        return [name for name, other in self._others.items() if other.has_answered and other.unanswered >= SILENT_PINGS]

    def is_called_missing(self, name: str) -> bool:
        """Whether somebody who leads says that Pulsar has lost `name`."""
        return any(name in missing and self.leads(other) for other, missing in self._called_missing.items())

    def is_advertised(self, name: str) -> bool:
        return name in self._others

    def leads(self, name: str) -> bool:
        other = self._others.get(name)
        if other is None or not other.serves:
            return False
        if other.has_answered:
            return other.unanswered < SILENT_PINGS and other.answers >= STEADY_ANSWERS
        # The control port of the other sidecar may be unreachable from here. After a failed attempt the sidecar leads
        # because the directory lists it, unless a third one reports it as silent.
        return other.was_asked_in_vain and not any(name in silent for silent in self._called_silent.values())
