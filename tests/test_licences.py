"""What is installed with the product may be used in products that are not open."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
COPYLEFT = re.compile(r"\b[AL]?GPL|(Affero|Lesser|Library) General Public|GNU General Public", re.IGNORECASE)


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _with_all_they_need(names: set[str]) -> set[str]:
    found: set[str] = set()
    left = set(names)
    while left:
        name = left.pop()
        found.add(name)
        needs = [Requirement(one) for one in distribution(name).requires or ()]
        # What only an extra, or only another system, needs is not installed here.
        left |= {_name(one.name) for one in needs if one.marker is None or one.marker.evaluate({"extra": ""})} - found
    return found


def _licences(name: str) -> str:
    metadata = distribution(name).metadata
    classifiers = [one for one in metadata.get_all("Classifier") or () if one.startswith("License ::")]
    fields = [*(metadata.get_all("License-Expression") or ()), *(metadata.get_all("License") or ())]
    return " | ".join((*(one[:200] for one in fields), *classifiers))


RUNTIME = _with_all_they_need({_name(one) for one in PROJECT["dependencies"]})
EXTRAS = _with_all_they_need({_name(one) for extra in PROJECT["optional-dependencies"].values() for one in extra})


@pytest.mark.parametrize("name", sorted(RUNTIME | EXTRAS))
def test_no_dependency_is_copyleft(name: str) -> None:
    assert _licences(name).strip(" |"), "it does not say"
    assert not COPYLEFT.search(_licences(name))


def test_a_copyleft_licence_is_seen() -> None:
    for text in ("LGPL-2.1-or-later", "GNU Lesser General Public License v2 (LGPLv2)", "AGPL-3.0-only", "GPLv3"):
        assert COPYLEFT.search(text)
    assert not COPYLEFT.search("MPL-2.0 | Apache-2.0 | BSD-3-Clause")
