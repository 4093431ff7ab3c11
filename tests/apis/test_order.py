"""Requests of one client about one group keep their order, and hold up nobody else's."""

from __future__ import annotations

import asyncio
import gc

from handler.apis.order import Order


class Somebody:
    peer = "127.0.0.1:1"
    local_address = ("127.0.0.1", 1)

    def abort(self) -> None: ...


async def test_what_came_first_is_done_first_however_long_it_takes() -> None:
    order, client = Order(), Somebody()
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0.02 / (number + 1))
        done.append(number)

    waiting = [order.run(client, "g", lambda number=number: work(number)) for number in range(5)]  # type: ignore[misc]
    assert order.is_waiting(client, "g"), "at once"
    assert not order.is_waiting(client, "other")
    assert not order.is_waiting(Somebody(), "g")
    await asyncio.gather(*waiting)
    assert done == [0, 1, 2, 3, 4]
    assert not order.is_waiting(client, "g")


async def test_one_that_fails_or_is_cancelled_lets_the_next_go_on() -> None:
    order, client = Order(), Somebody()

    async def fail() -> None:
        raise ValueError

    async def wait() -> None:
        await asyncio.sleep(60)

    async def work() -> str:
        return "done"

    first = order.run(client, "g", wait)
    second = order.run(client, "g", fail)
    third = order.run(client, "g", work)
    await asyncio.sleep(0)
    first.cancel()
    assert isinstance((await asyncio.gather(second, return_exceptions=True))[0], ValueError)
    assert await third == "done"


async def test_a_client_that_is_gone_leaves_nothing_behind() -> None:
    order, client = Order(), Somebody()

    async def work() -> None: ...

    await order.run(client, "g", work)
    del client
    gc.collect()
    assert not len(order._last)
