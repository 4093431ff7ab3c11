"""For all tests: see the two modules."""

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.support.hanging", "tests.support.verdicts")

# How long an example takes tells how busy the machine is, and nothing of the code.
settings.register_profile("whatever the machine does", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("whatever the machine does")
