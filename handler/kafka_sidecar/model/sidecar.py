"""Sidecars as they present themselves to each other, and as Kafka's clients see them."""

from __future__ import annotations

from typing import Final, NamedTuple

# The release that is assumed of a sidecar that does not announce one.
FIRST_RELEASE: Final = "0.2.0"
# The highest port, 65535, has five digits.
PORT_DIGITS: Final = 5


class Endpoint(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        """With the brackets that an address of IPv6 needs. Kubernetes' status.podIP has none."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoint_of(text: str) -> Endpoint | None:
    """None for what is not host:port. The host may be empty."""
    host, colon, port = text.strip().rpartition(":")
    is_one = colon and port.isdecimal() and port.isascii() and len(port) <= PORT_DIGITS
    return Endpoint(host.strip("[]"), int(port)) if is_one else None


def are_endpoints(text: str) -> bool:
    """Whether it is a list of them, separated by commas, each with a host."""
    return all((found := endpoint_of(one)) is not None and found.host for one in text.split(","))


class SidecarInfo(NamedTuple):
    name: str  # name of its Pulsar consumers and producers
    node_id: int
    advertised: str  # host:port advertised to Kafka clients; empty if only its own clients can reach it
    control: str = ""  # host:port for other sidecars; empty where that is not known
    rack: str = ""
    namespace: str = ""  # namespace of topics whose names have none
    external: str = ""  # host:port for Kafka clients of the external listener
    release: str = FIRST_RELEASE
    stored_format: int = 0  # newest version of the sidecars' data in Pulsar that it can read; 0 if it announces none
    coordinates: bool = True  # groups.coordinate: false for a sidecar that the others cannot reach


class Node(NamedTuple):
    """At the address of one listener."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
