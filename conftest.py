"""For all tests: see the two modules."""

pytest_plugins = ("tests.support.hanging", "tests.support.verdicts")
