"""The Pulsar versions that the offset, retry and lookup tests also run on."""

from typing import Final

OLDER_VERSIONS: Final = ("2.9.1", "2.11.0", "3.0.7")
