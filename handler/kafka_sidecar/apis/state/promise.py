"""An answer that comes later, without a turn of the loop before it is passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Promise(Generic[T]):
    """Resolved once, passed on once. For answers that a callback completes; a coroutine needs none."""

    __slots__ = ("_arguments", "_callback", "_value", "resolved")

    def __init__(self) -> None:
        self.resolved = False
        self._value: Any = None
        self._callback: Callable[..., None] | None = None
        self._arguments: tuple[Any, ...] = ()

    def resolve(self, value: T) -> None:
        self.resolved = True
        callback, arguments = self._callback, self._arguments
        if callback is None:
            self._value = value
            return
        # Who waits for a promise often keeps it: both would stay in memory until Python looks for cycles.
        self._callback, self._arguments = None, ()
        callback(*arguments, value)

    def then(self, callback: Callable[..., None], *arguments: Any) -> None:
        """Call `callback` with these arguments and the value: now, if it has come."""
        if self.resolved:
            callback(*arguments, self._value)
        else:
            self._callback = callback
            self._arguments = arguments


async def settled(result: T | Promise[T] | Awaitable[T]) -> T:
    """The value, whichever way it comes."""
    if isinstance(result, Promise):
        value: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        result.then(lambda resolved: None if value.done() else value.set_result(resolved))
        return await value
    return await result if isinstance(result, Awaitable) else result
