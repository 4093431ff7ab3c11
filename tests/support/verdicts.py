"""What a run of tests says at its end, and what counts as passed."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Final

import pytest

MOST_FAILURES: Final = 4  # the last twenty lines are to say it all


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed one: whatever it lacks, CI is to bring it."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"it was skipped, and CI skips nothing: {reason}"
    return report


@pytest.hookimpl(trylast=True)  # behind the list of the slowest
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which test, how to get the same again, and which logs to read."""
    failed = [*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())]
    if not failed:
        return
    terminalreporter.section("what failed, and its logs")
    for report in failed[:MOST_FAILURES]:
        terminalreporter.line(report.nodeid)
        for line in _again(report):
            terminalreporter.line(f"  again: {line}")
        logs = [value for name, value in getattr(report, "user_properties", ()) if name == "log"]
        terminalreporter.line(f"  logs: {', '.join(logs) if logs else 'no server was there'}")
    if len(failed) > MOST_FAILURES:
        terminalreporter.line(f"and {len(failed) - MOST_FAILURES} more")


def _again(report: pytest.TestReport) -> list[str]:
    """Hypothesis says how; all other tests draw from a seed that stands in their names or in their source."""
    texts = [text for name, text in report.sections if "ypothesis" in name] + [report.longreprtext]
    lines = [line.strip("E ").strip() for text in texts for line in text.splitlines()]
    return [line for line in lines if "@reproduce_failure" in line or line.startswith("@seed(")][:1]
