"""The features of a Kafka cluster and their levels (KIP-584), as ApiVersions tells them and UpdateFeatures looks at
them.

All levels are fixed: they are what this release does. Features of Kafka that are not here (share groups, streams
groups, a quorum of controllers that changes) are left out.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Feature(NamedTuple):
    lowest: int
    highest: int
    level: int


# MetadataVersion: 7 is 3.3-IV3, where KRaft became a feature, and 29 is 4.2-IV1.
METADATA_VERSION: Final = "metadata.version"
FEATURES: Final = {
    METADATA_VERSION: Feature(7, 29, 29),
    "group.version": Feature(0, 1, 1),  # KIP-848
    "transaction.version": Feature(0, 2, 2),  # KIP-890
}
