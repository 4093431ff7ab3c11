"""How long a classic group waits for its members to join."""

from __future__ import annotations


class JoinWindow:
    def __init__(self, initial_delay: float) -> None:
        self._initial_delay = initial_delay
        self.ends_at: float | None = None
        self.is_initial = False  # True during the first rebalance of an empty group (group.initial.rebalance.delay.ms)
        self._newcomer = False  # a member joined while the initial window was open
        self._remaining = 0.0  # seconds by which the initial window may still be extended

    def open_initial(self, clock: float, rebalance_seconds: float) -> None:
        """group.initial.rebalance.delay.ms: the others of a new group are about to come."""
        self.is_initial = True
        self._newcomer = False
        self._remaining = max(rebalance_seconds - self._initial_delay, 0.0)
        self.ends_at = clock + self._initial_delay

    def open(self, clock: float, rebalance_seconds: float) -> None:
        self.is_initial = False
        self.ends_at = clock + rebalance_seconds

    def close(self) -> None:
        self.ends_at = None

    def somebody_came(self) -> None:
        self._newcomer = True

    def is_due(self, clock: float) -> bool:
        return self.ends_at is not None and self.ends_at <= clock

    def extend(self, clock: float) -> bool:
        """Prolong the first one if somebody came while it was open. False where the waiting ends."""
        if not (self.is_initial and self._newcomer and self._remaining > 0):
            return False
        self._newcomer = False
        self.ends_at = clock + min(self._initial_delay, self._remaining)
        self._remaining = max(self._remaining - self._initial_delay, 0.0)
        return True
