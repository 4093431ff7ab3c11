"""`make golden`: the renderings that the tests compare with, as they are now."""

from __future__ import annotations

from tests.chart.rendering import CHART, GOLDEN, render, values_of

for name in ("default", "spark", "brokers"):
    (GOLDEN / f"{name}.yaml").write_text(render(values_of(CHART / f"ci/{name}.yaml")).text)
