"""What was measured, as one HTML file with its plots in it: nothing is loaded from elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
body { color: #1f2430; background: #fff }
h2 { margin-top: 2.5rem; font-size: 1.15rem } p { color: #555c6b }
svg { width: 100%; height: auto; display: block } text { font: 12px system-ui, sans-serif; fill: currentColor }
.sidecar { fill: #3667c9 } .kafka { fill: #8a93a6 } .pulsar { fill: #c9a13b } .rule { stroke: #b9bfcc; stroke-width: 1 }
.line { fill: none; stroke: #3667c9; stroke-width: 2 } .dot { fill: #3667c9 } .soft { fill: #6b7280 }
@media (prefers-color-scheme: dark) {
 body { color: #e6e9f0; background: #171a21 } p, .soft { color: #a3abba; fill: #a3abba } .rule { stroke: #454c5c }
 .sidecar, .dot { fill: #7aa2f0 } .line { stroke: #7aa2f0 } .kafka { fill: #8a93a6 } .pulsar { fill: #d9b75a }
}
"""
_LABEL: Final = 250  # pixels for the names on the left
_WIDTH: Final = 900
_BAR: Final = 16
_ROOM: Final = 80  # for the value behind a bar


def _bars(groups: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """Horizontal bars: a group for each case, a bar for each system."""
    largest = max(value for bars in groups.values() for value in bars.values()) or 1.0
    parts: list[str] = []
    y = 0
    for case, bars in groups.items():
        parts.append(f'<text x="0" y="{y + 13}">{escape(case)}</text>')
        for system, value in bars.items():
            width = max(1.0, value / largest * (_WIDTH - _LABEL - _ROOM))
            parts.append(
                f'<rect class="{system}" x="{_LABEL}" y="{y}" width="{width:.1f}" height="{_BAR - 3}" rx="2">'
                f"<title>{escape(case)}, {system}: {value:.3g} {unit}</title></rect>"
            )
            parts.append(
                f'<text class="soft" x="{_LABEL + width + 6:.1f}" y="{y + 11}">{value:.3g} {unit} {system}</text>'
            )
            y += _BAR
        y += 10
    return f'<svg viewBox="0 0 {_WIDTH} {y}" role="img">{"".join(parts)}</svg>'


def _line(values: Sequence[float], names: Sequence[str]) -> str:
    """How one cost went from run to run."""
    height, low, high = 70, 0.0, max(values) * 1.15 or 1.0
    step = (_WIDTH - _ROOM) / max(1, len(values) - 1)
    points = [
        (10 + number * step, height - (value - low) / (high - low) * (height - 12))
        for number, value in enumerate(values)
    ]
    dots = "".join(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(name)}: {value:.3g}</title></circle>'
        for (x, y), value, name in zip(points, values, names, strict=True)
    )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    last = f'<text class="soft" x="{points[-1][0] + 8:.1f}" y="{points[-1][1] + 4:.1f}">{values[-1]:.3g}</text>'
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height + 4}" role="img"><line class="rule" x1="0" x2="{_WIDTH}" y1="{height}" '
        f'y2="{height}"/>'
        f'<polyline class="line" points="{path}"/>{dots}{last}</svg>'
    )


def _by_case(rows: Sequence[Mapping[str, Any]], field: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.get(field) is not None:
            found.setdefault(row["case"], {})[row["system"]] = row[field]
    return found


def page(measured: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> str:
    rows = measured.get("throughput", ())
    crowds = [
        {**row, "case": f"{row['producers']} producers, {row['partitions']} partition{'s' * (row['partitions'] > 1)}"}
        for row in measured.get("crowds", ())
    ]
    single = [
        {**row, "case": f"{row['pace']}, acknowledged, p50", "system": row["path"]}
        for row in measured.get("latency", ())
    ]
    transactions = [
        {
            **row,
            "case": f"{row['client']}, {row['records']} to {row['partitions']} "
            f"partition{'s' * (row['partitions'] > 1)}",
        }
        for row in measured.get("transactions", ())
    ]
    sections = [
        (
            "Written",
            "By Kafka's ProducerPerformance; by Pulsar's own tool for native Pulsar.",
            _by_case(rows, "produce_mib_s"),
            "MiB/s",
        ),
        ("Read", "By ConsumerPerformance, what was written just before.", _by_case(rows, "consume_mib_s"), "MiB/s"),
        (
            "CPU of the server while it is written to",
            "The sidecar's is what it adds to the broker behind it.",
            _by_case(rows, "produce_cpu_s_per_gib"),
            "s/GiB",
        ),
        (
            "Many producers of single records",
            "Each with one request in flight.",
            _by_case(crowds, "batches_per_s"),
            "batches/s",
        ),
        ("One record at a time", "Until it is acknowledged.", _by_case(single, "acked_p50_ms"), "ms"),
        (
            "Transactions",
            "One producer, one after the other; of so many records, to so many partitions.",
            _by_case(transactions, "transactions_per_s"),
            "a second",
        ),
        (
            "Starting and growing",
            "Seconds each.",
            {row["what"]: {"sidecar": row["seconds"]} for row in measured.get("sizes", ())},
            "s",
        ),
    ]
    parts = [
        f"<h2>{escape(title)}</h2><p>{escape(text)}</p>{_bars(bars, unit)}"
        for title, text, bars, unit in sections
        if bars
    ]
    if history:
        parts.append("<h2>What the sidecar itself costs, from run to run</h2><p>make bench-quick; less is better.</p>")
        for what in history[-1]["costs"]:
            kept = [line for line in history if what in line["costs"]]
            names = [f"{line['commit']}, {time.strftime('%Y-%m-%d', time.gmtime(line['at']))}" for line in kept]
            parts.append(f"<p>{escape(what)}</p>{_line([line['costs'][what] for line in kept], names)}")
    made = time.strftime("%Y-%m-%d", time.gmtime(measured["at"]))
    about = (
        f"Run on {made} at {escape(measured['commit'])}: {escape(measured['machine'])}, shared by clients and servers. "
        "Ratios within a run are what counts; the figures belong to the machine."
    )
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>How fast the sidecar '
        "is</title>"
    )
    style = f"<style>{_STYLE}</style>"
    return (
        f'<!doctype html><html lang="en">{head}{style}<h1>How fast the sidecar '
        f"is</h1><p>{about}</p>{''.join(parts)}</html>\n"
    )
