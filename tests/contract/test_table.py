"""The table of the contract tells what held, what failed and what nobody played."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.all_cases import CASES
from tests.contract.case import Case
from tests.contract.copies import COPIES
from tests.contract.table import Played, as_table, noted


def test_each_case_holds_fails_or_was_not_played() -> None:
    holds, fails, unplayed = CASES[0], CASES[1], COPIES[-1]
    played: Played = {}
    with noted(played, holds, "2.9.1"):
        pass
    with pytest.raises(AssertionError), noted(played, fails, "2.9.1"):
        raise AssertionError
    with noted(played, unplayed, "4.2.4"):
        pass
    rows = as_table(played).splitlines()
    assert rows[0] == "| case | what of Pulsar does it | 2.9.1 | 4.2.4 |"
    assert [row_of(one, rows) for one in (holds, fails, unplayed)] == [
        ["holds", "not played"],
        ["**fails**", "not played"],
        ["not played", "holds"],
    ]


def row_of(one: Case[Any], rows: list[str]) -> list[str]:
    (row,) = [row for row in rows if row.startswith(f"| {one.name.replace('_', ' ')} |")]
    return [cell.strip() for cell in row.split("|")[3:-1]]
