"""The Pulsar versions that the offset, retry and lookup tests also run on."""

from typing import Final

import pytest

OLDEST: Final = "2.9.1"
BETWEEN: Final = ("2.11.0", "3.0.7")
OLDER_VERSIONS: Final = (OLDEST, *BETWEEN)
# For tests of what versions do differently: the oldest is always tried, those between it and today's by `make soak`,
# and by test_pulsar_versions in any case.
EACH_OLDER: Final = (OLDEST, *(pytest.param(version, marks=pytest.mark.soak) for version in BETWEEN))
