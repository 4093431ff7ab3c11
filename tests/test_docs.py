"""Pages that are made from the code are fresh."""

from __future__ import annotations

from pathlib import Path

from handler.docs import with_matrix

PAGE = Path(__file__).parents[1] / "docs" / "compatibility.md"


def test_the_matrix_is_that_of_the_code() -> None:
    page = PAGE.read_text()
    assert with_matrix(page) == page, "run `make docs`"
