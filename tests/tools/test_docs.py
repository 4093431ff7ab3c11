"""Pages that are made from the code are fresh."""

from __future__ import annotations

from pathlib import Path

from tools.docs import CHART_SCHEMA, configuration, with_matrix, with_settings

DOCS = Path(__file__).parents[2] / "docs"


def test_the_matrix_is_that_of_the_code() -> None:
    page = (DOCS / "compatibility.md").read_text()
    assert with_matrix(page) == page, "run `make docs`"


def test_every_setting_and_metric_is_on_its_page() -> None:
    page = (DOCS / "configuration.md").read_text()
    assert configuration() == page, "run `make docs`"
    for name in ("kafka_sidecar_request_seconds", "kafka_sidecar_index_alarms_total", "mirror", "replay_entries"):
        assert f"`{name}`" in page


def test_the_chart_knows_every_setting() -> None:
    schema = CHART_SCHEMA.read_text()
    assert with_settings(schema) == schema, "run `make docs`"
