"""Sidecars as they present themselves to each other, and as Kafka's clients see them."""

from __future__ import annotations

from typing import Final, NamedTuple

# Of sidecars that do not say theirs.
FIRST_RELEASE: Final = "0.2.0"
# Of the highest port, 65535.
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
    name: str  # of its consumers and producers at Pulsar
    node_id: int
    advertised: str  # host:port for Kafka clients; empty where only its own reach it
    control: str = ""  # host:port for other sidecars; empty where that is not known
    rack: str = ""
    namespace: str = ""  # of topics that are named without one
    external: str = ""  # host:port for Kafka clients of the external listener
    release: str = FIRST_RELEASE
    stored_format: int = 0  # what it can read of what sidecars store in Pulsar
    coordinates: bool = True  # false where others do not reach it


class Node(NamedTuple):
    """At the address of one listener."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
