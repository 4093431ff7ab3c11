"""Faults at the edges. Each test failed when it was written.

A test whose mend is not there yet is an expected failure. The mark is strict, so the mend takes it away.
"""

from __future__ import annotations

import pytest


def not_mended_yet(what: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(raises=AssertionError, strict=True, reason=what)
