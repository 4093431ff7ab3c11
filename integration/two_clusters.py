"""Two clusters that copy a namespace to each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from integration.launcher.pulsar import DEFAULT_VERSION, Standalone
from integration.support import admin

NAMES: Final = ("east", "west")


def call(side: Standalone, method: str, path: str, body: object = None) -> bytes:
    return admin(method, f"{side.admin_url}/admin/v2/{path}", None if body is None else json.dumps(body).encode())


@contextmanager
def two_clusters(
    directory: Path, namespace: str, version: str = DEFAULT_VERSION
) -> Iterator[tuple[Standalone, Standalone]]:
    """`east` and `west`. Neither forgets anything of the namespace."""
    settings = {"replicationStartAt": "earliest"}
    brokers = {
        name: Standalone(directory / name, version=version, settings={"clusterName": name, **settings})
        for name in NAMES
    }
    try:
        for broker in brokers.values():
            broker.start()
        for name, broker in brokers.items():
            for other in brokers.keys() - {name}:
                call(
                    broker,
                    "PUT",
                    f"clusters/{other}",
                    {"serviceUrl": brokers[other].admin_url, "brokerServiceUrl": brokers[other].url},
                )
            call(broker, "POST", "tenants/public", {"adminRoles": [], "allowedClusters": sorted(brokers)})
            call(broker, "PUT", f"namespaces/{namespace}", {"replication_clusters": sorted(brokers)})
            call(
                broker,
                "POST",
                f"namespaces/{namespace}/retention",
                {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
            )
        east, west = brokers.values()
        yield east, west
    finally:
        for broker in brokers.values():
            broker.stop()
