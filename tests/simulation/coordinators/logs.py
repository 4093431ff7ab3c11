"""What an internal log holds by its entries, of which the model forgets none: nothing is compacted for who judges."""

from __future__ import annotations

from handler.coordination.compacted_topic import MARKER_KEY as FOLLOWED_MARKER
from handler.coordination.term_log import MARKER_KEY as TERM_MARKER
from tests.model.compaction import messages_in
from tests.model.internal_log import InternalLog
from tests.simulation.history import Violation

State = dict[str, str]


class JudgedLog:
    """Entry by entry, as they are stored."""

    def __init__(self, log: InternalLog) -> None:
        self.log = log
        self._looked_at = 0
        self.written: list[tuple[str, str | None]] = []  # in order
        self.stored_with: list[int] = []  # by entry: how much of `written` there is then
        self.markers: dict[str, int] = {}  # the first marker of each writer: how much was written before
        self._writer = ""  # of the term that the last marker began

    def look(self) -> None:
        for entry in self.log.entries[self._looked_at :]:
            writer = entry.message_metadata.producer_name.decode()
            for message in messages_in(entry):
                key = message.key or b""
                if key == TERM_MARKER:
                    self.markers.setdefault(writer, len(self.written))
                    self._writer = writer
                elif key != FOLLOWED_MARKER:
                    self.written.append((key.decode(), message.value.decode() if message.value else None))
                if self._writer and writer != self._writer:
                    raise Violation(f"{writer} has written entry {entry.position} in the term of {self._writer}")
            self.stored_with.append(len(self.written))
        self._looked_at = len(self.log.entries)

    @property
    def count(self) -> int:
        self.look()
        return len(self.written)

    def state(self, count: int) -> State:
        """What counts when so much is written."""
        found: State = {}
        for key, value in self.written[:count]:
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        return found

    def held(self, key: str, begin: int, end: int) -> list[str | None]:
        """The values that a key had, from when `begin` was written until `end` was."""
        values = [self.state(begin).get(key)]
        values += [value for of, value in self.written[begin:end] if of == key]
        return values
