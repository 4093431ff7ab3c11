"""Which case holds where, as the run of the cases has seen it."""

from __future__ import annotations

from typing import Any

from tests.contract.all_cases import CASES
from tests.contract.case import Case
from tests.contract.copies import COPIES

# By what it was played on, the names of the cases that held.
Held = dict[str, set[str]]


def note(held: Held, one: Case[Any], played_on: str) -> None:
    held.setdefault(played_on, set()).add(one.name)


def as_table(held: Held) -> str:
    """In Markdown."""
    columns = sorted(held)
    rows = [["case", "what of Pulsar does it", *columns], ["---"] * (2 + len(columns))]
    cases: list[Case[Any]] = [*CASES, *COPIES]
    for one in cases:
        rows.append([one.name.replace("_", " "), f"`{one.source}`", *("holds" if one.name in held[column] else "" for column in columns)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
