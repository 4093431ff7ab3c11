"""What a mirror's name makes: its group, its topic of runs, its producers. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kafka_sidecar.errors import ConfigError

# No hyphen: a transactional id (mirror-NAME-TOPIC-PARTITION) can then be split again, so no two mirrors share one.
_ALLOWED: Final = re.compile(r"[A-Za-z0-9_.]{1,60}")


class MirrorName(NamedTuple):
    """Of a mirror, or of a replay, which keeps its progress in the same way."""

    name: str
    kind: str = "mirror"

    @classmethod
    def of(cls, name: str, kind: str = "mirror") -> MirrorName:
        if not _ALLOWED.fullmatch(name):
            raise ConfigError(f"--name {name}: a {kind}'s name has up to 60 letters, digits, dots and underscores")
        return cls(name, kind)

    @property
    def group(self) -> str:
        return f"{self.kind}-{self.name}"

    @property
    def runs_topic(self) -> str:
        return f"{self.kind}-{self.name}-offsets"

    def transactional_id(self, topic: str, partition: int) -> str:
        return f"{self.kind}-{self.name}-{topic}-{partition}"
