"""A counter that costs an addition: prometheus-client's own takes a lock each time.

It is counted by the loop's thread only, and read by the thread that answers scrapes.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector


class Total(Collector):
    __slots__ = ("name", "text", "value")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.value = 0

    def add(self, amount: int) -> None:
        self.value += amount

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily(self.name, self.text, value=float(self.value))
