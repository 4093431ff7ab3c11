"""The package never gets less tidy: the numbers of tests/tidy.json may only fall (see `tools/tidy.py`)."""

from __future__ import annotations

import pytest

from tools.tidy import RULES, counted, listed, worse


@pytest.fixture(scope="module")
def now() -> dict[str, dict[str, int]]:
    return counted()


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_less_tidy_than_is_written_down(now: dict[str, dict[str, int]], rule: str) -> None:
    risen = worse({rule: now[rule]}, listed())
    assert not risen, "\n".join(risen)


@pytest.mark.parametrize("rule", RULES)
def test_what_was_tidied_stays_so(now: dict[str, dict[str, int]], rule: str) -> None:
    fallen = worse({rule: listed().get(rule, {})}, now)
    assert not fallen, "run `make tidy`: the numbers have fallen"


def test_a_number_that_rises_is_named() -> None:
    assert worse({"words": {"a.py": 3, "b.py": 1}}, {"words": {"a.py": 2, "b.py": 1}}) == [
        "words: a.py has 3, and may have 2"
    ]
    assert worse({"words": {"new.py": 1}}, {}) == ["words: new.py has 1, and may have 0"]
