"""A histogram that costs a request a bisection: prometheus-client's own takes locks for every bucket.

It is filled by the loop's thread only; the thread that answers scrapes reads it, and may see a
request counted whose seconds are not yet in the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.registry import Collector


class Latency:
    """The distribution of one label's values."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.total += seconds


class Latencies(Collector):
    def __init__(self, name: str, text: str, label: str, bounds: tuple[float, ...]) -> None:
        self.name = name
        self.text = text
        self.label = label
        self._bounds = bounds
        self._by_label: dict[str, Latency] = {}

    def of(self, value: str) -> Latency:
        """Those of one value of the label; kept by who observes often."""
        return self._by_label.setdefault(value, Latency(self._bounds))

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = HistogramMetricFamily(self.name, self.text, labels=[self.label])
        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for value, latency in list(self._by_label.items()):
            counts = [float(count) for count in accumulate(latency.counts)]
            family.add_metric([value], list(zip(bounds, counts, strict=True)), latency.total)
        yield family
