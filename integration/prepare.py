"""Get every jar the tests need before the first test waits for one."""

from __future__ import annotations

from integration.launcher.jars import class_path
from integration.launcher.kafka import OLDER_VERSIONS as OLDER_CLIENTS
from integration.launcher.kafka import STREAMS, tools
from integration.launcher.pulsar import OFFLOADER, bundle, version_from_environment
from integration.launcher.spark import CONNECTOR, ICEBERG
from integration.versions import OLDER_VERSIONS


def main() -> None:
    clients = (tools(), *(tools(version) for version in OLDER_CLIENTS))
    pulsars = [bundle(version) for version in (version_from_environment(), *OLDER_VERSIONS)]
    for wanted in (*pulsars, OFFLOADER, CONNECTOR, ICEBERG, STREAMS, *clients):
        class_path(wanted)


if __name__ == "__main__":
    main()
