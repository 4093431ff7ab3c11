"""The page of an audit."""

from __future__ import annotations

from datetime import datetime

from kafka_sidecar.pipelines.audit.report import bars, page


def test_a_page_needs_nothing_else_and_escapes_what_it_shows() -> None:
    keys: list[list[object]] = [
        ["topic", "key", "when"],
        ["<t>", b"\x00<k>", datetime(2026, 1, 2, 3)],
        ["u", None, None],
    ]
    tables: dict[str, list[list[object]]] = {"Keys": keys, "Empty": [["x"]]}
    made = page(
        "Audit of <t>",
        ["<fact>"],
        ["<bad>"],
        ["<note>"],
        tables,
        {"t": bars("records", [("one", 1.0), ("two", 4_000.0)])},
    )
    assert "<t>" not in made
    assert "&lt;bad&gt;" in made
    assert "&lt;fact&gt;" in made
    assert "&lt;note&gt;" in made
    assert "Empty" not in made
    assert "2026-01-02 03:00:00.000" in made
    assert "two: 4,000" in made
    assert "http" not in made.replace("http-equiv", "")
    assert "Nothing is wrong" in page("a", [], [], [], {}, {})


def test_no_values_make_no_plot() -> None:
    assert bars("records", []) == ""
    assert 'height="0.00"' in bars("records", [("a", 0.0)])
