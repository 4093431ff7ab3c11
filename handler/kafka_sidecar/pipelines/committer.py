"""Commits offsets of consumer groups from a thread of its own, so that nobody waits for Kafka.

Of each group only the latest is committed, and it is tried until it is stored or a later one takes its place.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

from aiokafka.errors import KafkaError

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.kafka_client.committed import commit
from kafka_sidecar.pipelines.offsets import Offsets

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 2.0
COMMIT_SECONDS: Final = 30.0


class Committer:
    def __init__(
        self, bootstrap: str, store: Callable[[str, str, Offsets], Coroutine[Any, Any, None]] = commit
    ) -> None:
        self._bootstrap = bootstrap
        self._store = store
        self._changed = threading.Condition()
        self._wanted: dict[str, Offsets] = {}  # offsets to commit, by group
        self._stored: dict[str, Offsets] = {}  # offsets that were committed last, by group
        self._thread: threading.Thread | None = None

    def commit(self, group: str, offsets: Offsets) -> None:
        """Have these committed soon. Returns at once."""
        with self._changed:
            if offsets == self._wanted.get(group, self._stored.get(group)):
                return
            self._wanted[group] = offsets
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="commits of Spark's progress", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until all is stored; False where it takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._wanted, seconds)

    def forget(self, group: str) -> None:
        """Its query has ended. What is not stored yet is still tried."""
        with self._changed:
            self._stored.pop(group, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted)
                wanted = dict(self._wanted)
            is_any_left = False
            for group, offsets in wanted.items():
                is_any_left |= not self._try(group, offsets)
            with self._changed:
                if is_any_left:
                    self._changed.wait(RETRY_SECONDS)

    def _try(self, group: str, offsets: Offsets) -> bool:
        try:
            asyncio.run(asyncio.wait_for(self._store(self._bootstrap, group, offsets), COMMIT_SECONDS))
        except (KafkaError, SidecarError, OSError, TimeoutError) as error:
            log.warning(
                "the progress of group %s is not committed at %s yet: %s",
                group,
                self._bootstrap,
                str(error) or "no answer",
            )
            return False
        except Exception:
            log.exception("the progress of group %s is not committed at %s yet", group, self._bootstrap)
            return False
        with self._changed:
            self._stored[group] = offsets
            if self._wanted.get(group) == offsets:
                del self._wanted[group]
            self._changed.notify_all()
        return True
