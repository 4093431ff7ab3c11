"""A test that hangs is ended, and says where: the stacks of all its tasks and threads.

What even that does not end (it stands in C, or catches everything) is ended with its process by `faulthandler_timeout`.
"""

from __future__ import annotations

import asyncio
import gc
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

import pytest

# Of each of set-up, call and teardown, by the folder. The longest in CI take a third of it. A simulation never waits,
# it has bounds of its own, and takes three times as long on a machine that is three times as busy.
SECONDS: Final = {"tests/simulation/": 600, "tests/": 120, "integration/": 480}
SOAK_SECONDS: Final = 3_600
GIVEN: Final = os.environ.get("TEST_SECONDS")  # for tests with more to do than usual
AGAIN_SECONDS: Final = 60


def stacks() -> str:
    """Where every thread and every task of this process stands."""
    out = io.StringIO()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        out.write(f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame)[-12:])}\n")
    for one in gc.get_objects():
        if isinstance(one, asyncio.Task) and not one.done():
            one.print_stack(limit=6, file=out)
    return out.getvalue()


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """What takes longer fails with all stacks."""

    def end(*_: object) -> None:
        pytest.fail(f"it hangs: not done after {seconds:.0f} s\n{stacks()}", pytrace=False)

    before = signal.signal(signal.SIGALRM, end)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, AGAIN_SECONDS)
        signal.signal(signal.SIGALRM, before)


def _limit(item: pytest.Item) -> float:
    if GIVEN is not None:
        return float(GIVEN)
    if item.get_closest_marker("soak"):
        return SOAK_SECONDS
    return next(seconds for folder, seconds in SECONDS.items() if item.nodeid.startswith(folder))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    with ended_after(_limit(item)):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    with ended_after(_limit(item)):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    with ended_after(_limit(item)):
        yield
