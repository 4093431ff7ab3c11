"""`kafka-sidecar try`, where nothing comes back."""

from __future__ import annotations

import pytest

from kafka_sidecar.commands.try_.try_out import try_out
from kafka_sidecar.errors import CommandFailed


async def test_it_says_why_an_address_can_not_be_connected_to() -> None:
    with pytest.raises(
        CommandFailed, match=r"127\.0\.0\.1:1: no answer yet after 1 s \(Unable connect to .* Connect call failed"
    ):
        await try_out("127.0.0.1:1", "", 1, print)
