"""How long tests wait for what must happen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# The limit is for what will never happen: a busy machine takes its time.
LONG: Final = 300.0


def wait_for(what: Callable[[], bool], seconds: float = LONG) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)
