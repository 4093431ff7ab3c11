"""What is done with a test that hangs, or that is skipped where nothing may be."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.support.hanging import ended_after

pytest_plugins = ("pytester",)


def test_what_hangs_is_ended_and_says_where_its_tasks_and_threads_stand() -> None:
    goes_on = threading.Event()

    def stands_in_a_thread() -> None:
        goes_on.wait()

    async def stands_in_a_task() -> None:
        await asyncio.Event().wait()

    async def hangs() -> None:
        await asyncio.gather(asyncio.create_task(stands_in_a_task()))

    thread = threading.Thread(target=stands_in_a_thread)
    thread.start()
    with pytest.raises(pytest.fail.Exception) as failed, ended_after(1):
        asyncio.run(hangs())
    goes_on.set()
    thread.join()
    assert "it hangs" in str(failed.value)
    assert "stands_in_a_thread" in str(failed.value)
    assert "stands_in_a_task" in str(failed.value)


def test_what_is_done_in_time_is_left_alone() -> None:
    with ended_after(30):
        pass


@pytest.mark.parametrize(("in_ci", "outcome"), [("", {"skipped": 1}), ("1", {"failed": 1})])
def test_in_ci_a_skipped_test_is_a_failed_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, in_ci: str, outcome: dict[str, int]
) -> None:
    monkeypatch.setenv("CI", in_ci)
    pytester.makepyfile("import pytest\ndef test_it() -> None:\n    pytest.skip('node must be installed')\n")
    done = pytester.runpytest_inprocess("-p", "no:asyncio", "-p", "tests.support.verdicts")
    done.assert_outcomes(**outcome)
    if in_ci:
        done.stdout.fnmatch_lines(
            ["*what failed*", "test_in_ci_a_skipped_test_is_a_failed_one.py::test_it", "*no server was there"]
        )
