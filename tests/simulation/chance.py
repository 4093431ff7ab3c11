"""What a seed decides: a stream of numbers for each name."""

from __future__ import annotations

from random import Random


class Chance:
    def __init__(self, seed: int, within: str = "") -> None:
        self.seed = seed
        self._within = within
        self._streams: dict[str, Random] = {}

    def of(self, name: str) -> Random:
        """The stream of a name. Nothing else draws from it."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Random(f"{self.seed}/{self._within}{name}")
        return stream

    def apart(self, name: str) -> Chance:
        """Streams that have the same names, and are others."""
        return Chance(self.seed, f"{self._within}{name}/")
