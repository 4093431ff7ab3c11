"""For unit tests: time passes while nothing is left to do."""

from tests.support.patient_loop import PatientLoop


def pytest_asyncio_loop_factories() -> dict[str, type[PatientLoop]]:
    return {"patient": PatientLoop}
