"""Which case holds where, as the run of the cases has seen it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.contract.all_cases import CASES
from tests.contract.case import Case
from tests.contract.copies import COPIES
from tests.contract.internal import INTERNAL

# By what they were played on, the names of the cases, and whether each one held.
Played = dict[str, dict[str, bool]]

_CELLS = {True: "holds", False: "**fails**", None: "not played"}


@contextmanager
def noted(played: Played, one: Case[Any], played_on: str) -> Iterator[None]:
    """The body plays it."""
    cases = played.setdefault(played_on, {})
    cases[one.name] = False
    yield
    cases[one.name] = True


def as_table(played: Played) -> str:
    """In Markdown."""
    columns = sorted(played)
    rows = [["case", "what of Pulsar does it", *columns], ["---"] * (2 + len(columns))]
    cases: list[Case[Any]] = [*CASES, *COPIES, *INTERNAL]
    for one in cases:
        rows.append(
            [
                one.name.replace("_", " "),
                f"`{one.source}`",
                *(_CELLS[played[column].get(one.name)] for column in columns),
            ]
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
