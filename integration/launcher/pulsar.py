"""A real Pulsar standalone of a given version, from Maven jars.

Each instance has its own ports and its own data directory; `kill` and `start` on the same object
bring it back on the same data, as a crashed broker would come back.
"""

from __future__ import annotations

import contextlib
import os
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from integration.launcher.jars import Bundle, class_path
from integration.launcher.jvm import short_lived_server
from integration.launcher.process import JVM_OPENS, STARTS_WITHIN, Restartable, Server, free_port

DEFAULT_VERSION: Final = "4.2.4"

INTERCEPTORS: Final = ",".join(
    "org.apache.pulsar.common.intercept." + name
    for name in ("AppendIndexMetadataInterceptor", "AppendBrokerTimestampMetadataInterceptor")
)

# What the sidecar needs of a broker, and nothing else that differs from Pulsar's own defaults.
SIDECAR_SETTINGS: Final[dict[str, str]] = {
    "brokerEntryMetadataInterceptors": INTERCEPTORS,
    "exposingBrokerEntryMetadataToClientEnabled": "true",
    "systemTopicEnabled": "true",
    "topicLevelPoliciesEnabled": "true",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "allowAutoTopicCreation": "false",
    "defaultRetentionTimeInMinutes": "10080",
    "defaultRetentionSizeInMB": "-1",
}

# Small enough for a laptop and for CI, and quick to start.
LAPTOP_SETTINGS: Final[dict[str, str]] = {
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "clusterName": "standalone",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "managedLedgerCacheSizeMB": "64",
    "loadBalancerEnabled": "false",
    "loadBalancerOverrideBrokerNicSpeedGbps": "1",
    "webSocketServiceEnabled": "false",
    "functionsWorkerEnabled": "false",
    "brokerShutdownTimeoutMs": "5000",
    "allowLoopback": "true",
    "journalSyncData": "false",
    "journalWriteData": "true",
    "journalMaxGroupWaitMSec": "1",
    "numJournalCallbackThreads": "2",
    # As in Pulsar's bookkeeper.conf: an entry of maxMessageSize and what is around it
    "nettyMaxFrameSizeBytes": "5253120",
    "dbStorage_writeCacheMaxSizeMb": "64",
    "dbStorage_readAheadCacheMaxSizeMb": "32",
    "dbStorage_rocksDB_blockCacheSize": "16777216",
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "gcWaitTime": "60000",
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.98",
    "diskUsageLwmThreshold": "0.97",
    "openFileLimit": "0",
    "flushInterval": "1000",
}

JVM_FLAGS: Final = (
    "-XX:MaxDirectMemorySize=1g",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djute.maxbuffer=10485760",
    "-Dorg.apache.pulsar.shade.io.netty.tryReflectionSetAccessible=true",
    *JVM_OPENS,
)

LOG4J: Final = """<Configuration status="WARN"><Appenders><Console name="C" target="SYSTEM_OUT">
<PatternLayout pattern="%d{HH:mm:ss.SSS} %-5level %logger{1} - %msg%n"/></Console></Appenders>
<Loggers><Root level="info"><AppenderRef ref="C"/></Root></Loggers></Configuration>
"""


# Of a health check a broker takes seconds where the machine is busy, and it goes on with one that nobody waits for any
# more: many of them together kept a broker from becoming ready for a minute.
ANSWER_SECONDS: Final = 20.0


def version_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3])


def bundle(version: str) -> Bundle:
    # slf4j 1 up to Pulsar 3, slf4j 2 from 4 on.
    binding = "log4j-slf4j2-impl" if version_tuple(version) >= (4,) else "log4j-slf4j-impl"
    return Bundle(
        name=f"pulsar-{version}",
        boms=(f"org.apache.pulsar:pulsar:{version}",),
        jars=(
            f"org.apache.pulsar:pulsar-broker:{version}",
            "org.apache.logging.log4j:log4j-core",
            f"org.apache.logging.log4j:{binding}",
        ),
    )


# Maven Central has this version of it and no other; it serves brokers of 4.2 too.
OFFLOADER: Final = Bundle(
    name="offloader", jars=("org.apache.pulsar:tiered-storage-file-system:4.0.6",), without=("*:*",)
)


def write_settings(path: Path, settings: dict[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def java(version: str, directory: Path, heap: str = "-Xmx768m", flags: Sequence[str] | None = None) -> list[str]:
    """The start of a command line that runs a class of this Pulsar version; without `flags`, in a JVM that lives for
    seconds.
    """
    if flags is None:
        flags = short_lived_server(bundle(version))
    log4j = directory / "log4j2.xml"
    log4j.write_text(LOG4J)
    logging = (f"-Dlog4j2.configurationFile={log4j}", f"-Dlog4j.configurationFile={log4j}")
    return ["java", heap, *flags, *JVM_FLAGS, *logging, "-cp", class_path(bundle(version))]


def answers(url: str) -> bool:
    with (
        contextlib.suppress(OSError, urllib.error.URLError),
        urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response,  # noqa: S310
    ):
        return bool(response.status == 200)
    return False


class Standalone(Restartable):
    """One broker, one bookie, one metadata store, in one JVM."""

    def __init__(
        self,
        directory: Path,
        *,
        version: str = DEFAULT_VERSION,
        port: int = 0,
        web_port: int = 0,
        settings: dict[str, str] | None = None,
        without: tuple[str, ...] = (),
        jvm: Sequence[str] | None = None,
    ) -> None:
        """`jvm`: flags of one that is measured (`LONG_LIVED`), or that does something besides."""
        self.directory = directory
        self.version = version
        self.port = port or free_port()
        self.web_port = web_port or free_port()
        self._bookie_port = free_port()
        self._zookeeper_port = free_port()
        self._jvm = jvm
        chosen = {**LAPTOP_SETTINGS, **SIDECAR_SETTINGS, **(settings or {})}
        self._settings = {key: value for key, value in chosen.items() if key not in without}

    def change(self, settings: dict[str, str]) -> None:
        """From the next start on."""
        self._settings.update(settings)

    @property
    def url(self) -> str:
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def log(self) -> Path:
        return self.directory / "pulsar.log"

    @property
    def journal(self) -> str:
        """How the bookie writes: that is most of the time that an acknowledgement takes."""
        return ", ".join(f"{key}={value}" for key, value in sorted(self._settings.items()) if key.startswith("journal"))

    def start(self, seconds: float = STARTS_WITHIN) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "standalone.conf"
        settings = {
            **self._settings,
            "brokerServicePort": str(self.port),
            "webServicePort": str(self.web_port),
            "bookiePort": str(self._bookie_port),
            "httpServerPort": str(free_port()),
            "prometheusStatsHttpPort": str(free_port()),
        }
        arguments = ["--config", str(config), "-nfw", "-nss", "-a", "127.0.0.1"]
        arguments += [
            "--bookkeeper-port",
            str(self._bookie_port),
            "--bookkeeper-dir",
            str(self.directory / "bookkeeper"),
        ]
        if version_tuple(self.version) < (2, 11):
            settings["zookeeperServers"] = settings["configurationStoreServers"] = f"127.0.0.1:{self._zookeeper_port}"
            arguments += [
                "--zookeeper-port",
                str(self._zookeeper_port),
                "--zookeeper-dir",
                str(self.directory / "zookeeper"),
            ]
        else:
            arguments += ["--metadata-dir", str(self.directory / "metadata")]
        write_settings(config, settings)
        command = [
            *java(self.version, self.directory, flags=self._jvm),
            "org.apache.pulsar.PulsarStandaloneStarter",
            *arguments,
        ]
        self._server = Server(f"Pulsar {self.version}", command, self.log, env={"PULSAR_LOG_CONF": "log4j2.xml"})
        try:
            self._server.wait_until(self._ready, seconds)
        except BaseException:
            self._server.kill()
            raise

    def _ready(self) -> bool:
        return answers(f"{self.admin_url}/admin/v2/brokers/health") and answers(
            f"{self.admin_url}/admin/v2/namespaces/public/default"
        )


def version_from_environment() -> str:
    version = os.environ.get("PULSAR_VERSION", DEFAULT_VERSION)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"PULSAR_VERSION is {version!r}: set it to a version of Pulsar, as in {DEFAULT_VERSION}.")
    return version
