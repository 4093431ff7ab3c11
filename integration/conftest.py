"""Real servers for the tests: started once a session, each in a directory of its own.

`PULSAR_URL` and `PULSAR_ADMIN_URL` point the same tests at any other cluster; what needs to stop or
configure a broker then has nothing to do and says so.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession
from xdist.remote import Producer

from integration.launcher.brokers import TwoBrokers
from integration.launcher.jvm import SHORT_LIVED
from integration.launcher.process import Server
from integration.launcher.pulsar import Standalone, version_from_environment
from integration.launcher.sidecar import SIDECAR_LOG, SidecarProcess
from integration.launcher.spark import spark_session
from integration.order import FilesThatShareServers, place

pytest.register_assert_rewrite("tests.contract")  # so that a failed case prints the values that it compared

KEEPALIVE_SECONDS: Final = 3
# Sidecars of tests have the settings of tests, and none that somebody has set for a sidecar of his own.
for _name in [name for name in os.environ if name.startswith("KAFKA_SIDECAR_")]:
    del os.environ[_name]
# Tests have many groups, and their members come all at once. test_crowds keeps the three seconds that are the default.
SidecarProcess.defaults["groups__initial_rebalance_delay_ms"] = "300"
# Of each Spark driver that a test starts, in this process or below it: it lives for seconds.
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(SHORT_LIVED))
_names = itertools.count(1)
_LINES_SHOWN: Final = 40
_SERVERS_BEFORE: Final = pytest.StashKey[int]()


@dataclass(frozen=True)
class Cluster:
    """A Pulsar and a sidecar in front of it."""

    pulsar_url: str
    admin_url: str
    sidecar: SidecarProcess
    standalone: Standalone | None

    @property
    def kafka(self) -> str:
        return self.sidecar.address


def new_topic() -> str:
    return f"t{next(_names)}-{os.getpid()}"


@pytest.fixture
def topic() -> str:
    return new_topic()


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone | None]:
    if "PULSAR_URL" in os.environ:
        yield None
        return
    server = Standalone(tmp_path_factory.mktemp("pulsar"), version=version_from_environment())
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def cluster(standalone: Standalone | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    url = standalone.url if standalone else os.environ["PULSAR_URL"]
    admin_url = standalone.admin_url if standalone else os.environ["PULSAR_ADMIN_URL"]
    sidecar = SidecarProcess(tmp_path_factory.mktemp("sidecar"), url, admin_url)
    sidecar.start()
    yield Cluster(url, admin_url, sidecar, standalone)
    assert sidecar.running, f"the sidecar died: {sidecar.log.read_text()[-2000:]}"
    assert sidecar.stop() == 0
    assert not sidecar.complaints()


@pytest.fixture(scope="module")
def other(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SidecarProcess]:
    """A sidecar that has written none of it, so that it reads what is stored."""
    sidecar = SidecarProcess(tmp_path_factory.mktemp("other"), cluster.pulsar_url, cluster.admin_url)
    sidecar.start()
    yield sidecar
    assert sidecar.stop() == 0
    assert not sidecar.complaints()


@pytest.fixture
def own_sidecar(cluster: Cluster, tmp_path: Path) -> Iterator[SidecarProcess]:
    """One that a test may kill, or measure."""
    process = SidecarProcess(tmp_path / "sidecar", cluster.pulsar_url, cluster.admin_url)
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def fleet_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """For tests of several sidecars: it takes a silent connection for dead after at most twice `KEEPALIVE_SECONDS`."""
    server = Standalone(
        tmp_path_factory.mktemp("pulsar"), settings={"keepAliveIntervalSeconds": str(KEEPALIVE_SECONDS)}
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def two_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoBrokers]:
    """A test that breaks one of them mends it."""
    brokers = TwoBrokers(tmp_path_factory.mktemp("two"), keepAliveIntervalSeconds=str(KEEPALIVE_SECONDS))
    try:
        brokers.start()
        yield brokers
    finally:
        brokers.stop()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for all: a process has one JVM."""
    session = spark_session(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_SERVERS_BEFORE] = len(Server.started)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed names the logs of its servers, and shows what its sidecars said last."""
    report = yield
    if report.failed:
        first = item.stash.get(_SERVERS_BEFORE, 0)
        logs = dict.fromkeys(
            server.log for number, server in enumerate(Server.started) if number >= first or server.running
        )
        report.user_properties += [("log", str(log)) for log in logs]
        for log in logs:
            if log.name == SIDECAR_LOG and log.exists():
                lines = log.read_text(errors="replace").splitlines()[-_LINES_SHOWN:]
                report.sections.append((f"the last lines of {log}", "\n".join(lines)))
    return report


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesThatShareServers:
    return FilesThatShareServers(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place(item.path.stem))
    if "PULSAR_URL" not in os.environ:
        return
    # Against a cluster that is not ours, what stops, breaks or configures brokers has nothing to do.
    for item in items:
        needs_its_own = "cluster" not in getattr(item, "fixturenames", ())
        if needs_its_own and item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.skip(reason="starts brokers of its own, and PULSAR_URL names another cluster"))
