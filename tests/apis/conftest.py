"""One sidecar for each test of a handler."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.services import Sidecar


@pytest.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    one = Sidecar()
    await one.lead()
    yield one
    await one.close()
