"""A method or function of the product that is another for a while: planted faults, and what is counted."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(qualified_name: str, replacement: Callable[[Any], Any]) -> Iterator[None]:
    """`replacement` is given what is there."""
    path, owner, name = qualified_name.rsplit(".", 2)
    try:
        of: Any = importlib.import_module(f"{path}.{owner}")  # a function of a module
    except ModuleNotFoundError:
        of = getattr(importlib.import_module(path), owner)
    original = of.__dict__[name]
    setattr(of, name, replacement(original))
    try:
        yield
    finally:
        setattr(of, name, original)
