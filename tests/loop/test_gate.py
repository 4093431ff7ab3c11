"""Those who wait at a gate go on in their order, and not all at once."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from kafka_sidecar.loop.gate import IN_ONE_TURN, Gate


async def test_nobody_waits_at_an_open_gate() -> None:
    gate = Gate()
    await gate.passed(asyncio.get_running_loop().time() - 1)


async def test_all_go_on_in_their_order_some_in_each_turn() -> None:
    gate, passed = Gate(), list[int]()

    async def wait(number: int) -> None:
        await gate.passed(None)
        passed.append(number)

    gate.close()
    waiting = [asyncio.create_task(wait(number)) for number in range(3 * IN_ONE_TURN)]
    await asyncio.sleep(0.01)
    assert not passed
    gate.open()
    seen = [0]
    while len(passed) < len(waiting):
        await asyncio.sleep(0)
        seen.append(len(passed))
    assert max(after - before for before, after in pairwise(seen)) <= IN_ONE_TURN
    assert passed == sorted(passed)


async def test_who_has_waited_long_enough_or_is_cancelled_leaves_nothing() -> None:
    gate = Gate()
    gate.close()
    loop = asyncio.get_running_loop()
    await gate.passed(loop.time() + 0.01)
    waiting = asyncio.create_task(gate.passed(None))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not gate._waiting


async def test_one_that_is_closed_again_keeps_those_who_have_not_passed() -> None:
    gate = Gate()
    gate.close()
    waiting = [asyncio.create_task(gate.passed(None)) for _ in range(IN_ONE_TURN + 1)]
    await asyncio.sleep(0.01)
    gate.open()
    gate.close()
    await asyncio.sleep(0.01)
    assert [one.done() for one in waiting].count(False) == 1
    gate.open()
    await asyncio.gather(*waiting)
