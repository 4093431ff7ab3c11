"""A page with plots that needs nothing else: what an audit has found, for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any, Final

Table = Sequence[Sequence[object]]
_WIDE: Final = 720
_HIGH: Final = 140
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #1d2733 }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: .25em .8em; text-align: right; border-bottom: 1px solid #d8dee6 }
th:first-child, td:first-child { text-align: left } th { font-weight: 600 }
.fault { color: #b3261e; font-weight: 600 } .fine { color: #1b6e3c; font-weight: 600 }
svg { background: #f5f7fa; border-radius: 4px } figcaption { color: #5b6776; font-size: 13px } figure { margin: 1em 0 }
"""


def page(
    title: str,
    facts: Sequence[str],
    findings: Sequence[str],
    notes: Sequence[str],
    tables: Mapping[str, Sequence[Sequence[object]]],
    plots: Mapping[str, str],
) -> str:
    """`facts`: what was looked at. `tables` by their headings, the first row names the columns; `plots` are figures."""
    verdict = '<p class="fine">Nothing is wrong.</p>'
    if findings:
        verdict = '<p class="fault">What is to be looked at:</p>' + _list(findings)
    if notes:
        verdict += "<p>To know:</p>" + _list(notes)
    body = "".join(f"<h2>{escape(name)}</h2>{svg}" for name, svg in plots.items())
    body += "".join(f"<h2>{escape(name)}</h2>{_table(rows)}" for name, rows in tables.items() if len(rows) > 1)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1>{_list(facts)}{verdict}{body}</html>\n"
    )


def _list(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in texts) + "</ul>"


def _table(rows: Sequence[Sequence[object]]) -> str:
    head, *rest = rows
    cells = "".join(f"<th>{escape(str(one))}</th>" for one in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(_shown(one))}</td>" for one in row) + "</tr>" for row in rest)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def _shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bytes | bytearray):
        return repr(bytes(value[:40]))[1:]
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    return f"{value:,}" if isinstance(value, int) else str(value)


def bars(caption: str, values: Sequence[tuple[str, float]]) -> str:
    """A bar for each value; its label and number show under the pointer."""
    if not values:
        return ""
    top = max(value for _, value in values) or 1.0
    wide = _WIDE / len(values)
    shapes = []
    for number, (label, value) in enumerate(values):
        high = _HIGH * value / top
        place = f'x="{number * wide:.2f}" y="{_HIGH - high:.2f}" width="{max(wide - 1, 0.5):.2f}" height="{high:.2f}"'
        shapes.append(f'<rect {place} fill="#3566a8"><title>{escape(label)}: {value:,.0f}</title></rect>')
    text = f"{escape(caption)}; the highest is {top:,.0f}, from {escape(values[0][0])} to {escape(values[-1][0])}"
    figure = f'<svg viewBox="0 0 {_WIDE} {_HIGH}" width="{_WIDE}" height="{_HIGH}" role="img">{"".join(shapes)}</svg>'
    return f"<figure>{figure}<figcaption>{text}</figcaption></figure>"


def result_rows(rows: Sequence[Any], columns: Sequence[str]) -> list[list[object]]:
    """Spark's rows as a table."""
    return [list(columns), *([row[name] for name in columns] for row in rows)]
