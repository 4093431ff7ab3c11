"""What a sidecar says of itself to Pulsar, as the metadata of the consumer with which it stands for election.

Any client that may consume the topic can write what it likes there: what makes no sense counts as not said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_sidecar.model.sidecar import FIRST_RELEASE, SidecarInfo, endpoint_of

ADVERTISED: Final = "kafka.advertised"
NODE: Final = "kafka.node"
CONTROL: Final = "kafka.control"
RACK: Final = "kafka.rack"
EXTERNAL: Final = "kafka.external"
NAMESPACE: Final = "kafka.namespace"
RELEASE: Final = "kafka.release"
FORMAT: Final = "kafka.format"
# Kafka's node ids.
HIGHEST_NUMBER: Final = 2**31 - 1


def metadata_of(info: SidecarInfo) -> dict[bytes, bytes]:
    said = {
        ADVERTISED: info.advertised,
        NODE: str(info.node_id),
        CONTROL: info.control,
        RACK: info.rack,
        NAMESPACE: info.namespace,
        EXTERNAL: info.external,
        RELEASE: info.release,
        FORMAT: str(info.stored_format),
    }
    return {key.encode(): value.encode() for key, value in said.items()}


def info_of(name: str, metadata: Mapping[str, str]) -> SidecarInfo:
    return SidecarInfo(
        name,
        _number(metadata.get(NODE, "0")),
        _address(metadata.get(ADVERTISED, "")),
        _address(metadata.get(CONTROL, "")),
        metadata.get(RACK, ""),
        metadata.get(NAMESPACE, ""),
        _address(metadata.get(EXTERNAL, "")),
        metadata.get(RELEASE, FIRST_RELEASE),
        _number(metadata.get(FORMAT, "0")),
    )


def _address(text: str) -> str:
    endpoint = endpoint_of(text)
    return text if endpoint is not None and endpoint.host else ""


def _number(text: str) -> int:
    """Python reads no number of thousands of digits."""
    number = int(text) if text.isdecimal() and len(text) <= len(str(HIGHEST_NUMBER)) else 0
    return number if number <= HIGHEST_NUMBER else 0
