"""For unit tests: time passes while nothing is left to do, and the examples are the same in each run unless
SEARCH_EXAMPLES is set.
"""

import os

from hypothesis import settings

from tests.support.patient_loop import PatientLoop

settings.register_profile("repeatable", derandomize=True)
if not os.environ.get("SEARCH_EXAMPLES"):
    settings.load_profile("repeatable")


def pytest_asyncio_loop_factories() -> dict[str, type[PatientLoop]]:
    return {"patient": PatientLoop}
