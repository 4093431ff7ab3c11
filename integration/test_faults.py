"""Exactly once in the log: whatever breaks, every acknowledged record is there once, in order, and the
offsets told were true."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.conftest import new_topic
from integration.exactly_once import Fault, assert_once_and_in_order, write_while
from integration.launcher.process import free_port
from integration.launcher.pulsar import DEFAULT_VERSION, Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.support import FaultProxy, unload
from integration.versions import EACH_OLDER

STALL_SECONDS = 3  # longer than a batch waits for others, and shorter than a connection is silent before it is given up


@dataclass
class Breakable:
    """A Pulsar reached only through a proxy, and a sidecar, all for the test's own."""

    standalone: Standalone
    proxy: FaultProxy
    sidecar: SidecarProcess


def _start(directory: Path, version: str = DEFAULT_VERSION, **settings: str) -> Breakable:
    port = free_port()
    listeners = {"advertisedListeners": f"internal:pulsar://127.0.0.1:{port}", "internalListenerName": "internal"}
    standalone = Standalone(directory / "pulsar", version=version, settings={**listeners, **settings})
    proxy = FaultProxy(standalone.port, port)
    standalone.start()
    sidecar = SidecarProcess(directory / "sidecar", f"pulsar://127.0.0.1:{port}", standalone.admin_url)
    sidecar.start()
    return Breakable(standalone, proxy, sidecar)


def _stop(broken: Breakable) -> None:
    broken.sidecar.stop()
    broken.proxy.close()
    broken.standalone.stop()


@pytest.fixture(scope="module")
def breakable(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Breakable]:
    settings = {"brokerDeduplicationEnabled": "true"} if request.param == "deduplicating" else {}
    broken = _start(tmp_path_factory.mktemp("breakable"), **settings)
    yield broken
    _stop(broken)


# Deduplication changes what a broker does only when an entry is sent again.
ON_BOTH = pytest.mark.parametrize("breakable", ["plain", "deduplicating"], indirect=True)
ON_PLAIN = pytest.mark.parametrize(
    "breakable", ["plain", pytest.param("deduplicating", marks=pytest.mark.soak)], indirect=True
)


def _check(broken: Breakable, topic: str, fault: Fault) -> None:
    acks = write_while(broken.sidecar.address, topic, fault)
    assert_once_and_in_order(broken.sidecar.address, topic, acks)
    # Once more through a sidecar that knows nothing yet: catch-up readers and a fresh fold agree.
    other = SidecarProcess(broken.sidecar.log.parent / "other", broken.standalone.url, broken.standalone.admin_url)
    other.start()
    assert_once_and_in_order(other.address, topic, acks)
    assert other.stop() == 0


@ON_PLAIN
def test_the_connection_to_the_broker_is_cut(breakable: Breakable) -> None:
    topic = new_topic()

    def fault(until_more: Callable[[], None]) -> None:
        for _ in range(5):
            breakable.proxy.cut()
            until_more()

    _check(breakable, topic, fault)


@ON_BOTH
def test_the_connection_is_cut_after_a_send_and_before_its_receipt(breakable: Breakable) -> None:
    topic = new_topic()

    def fault(until_more: Callable[[], None]) -> None:
        for _ in range(6):
            breakable.proxy.cut_after_send()
            until_more()

    _check(breakable, topic, fault)


@ON_PLAIN
def test_the_connection_stalls(breakable: Breakable) -> None:
    topic = new_topic()

    def fault(until_more: Callable[[], None]) -> None:
        breakable.proxy.stall()
        time.sleep(STALL_SECONDS)
        breakable.proxy.resume()
        breakable.proxy.cut()

    _check(breakable, topic, fault)


@ON_PLAIN
def test_the_topic_is_unloaded(breakable: Breakable) -> None:
    topic = new_topic()

    def fault(until_more: Callable[[], None]) -> None:
        for _ in range(4):
            unload(breakable.standalone.admin_url, topic)
            until_more()

    _check(breakable, topic, fault)


@ON_BOTH
def test_the_sidecar_is_killed_and_comes_back(breakable: Breakable) -> None:
    topic = new_topic()

    def fault(until_more: Callable[[], None]) -> None:
        for _ in range(2):
            breakable.sidecar.kill()
            breakable.sidecar.start()
            until_more()

    _check(breakable, topic, fault)


@ON_BOTH
def test_the_broker_is_killed_and_comes_back(breakable: Breakable) -> None:
    topic = new_topic()

    def fault(until_more: Callable[[], None]) -> None:
        breakable.standalone.kill()
        breakable.standalone.start()

    _check(breakable, topic, fault)


@pytest.mark.parametrize("version", EACH_OLDER)
def test_older_brokers_that_are_cut_off_and_unload(version: str, tmp_path: Path) -> None:
    """Each version ends producers in its own way, and 2.9 to 2.11 drop SENDs without a word."""
    broken = _start(tmp_path, version=version)
    topic = new_topic()

    def fault(until_more: Callable[[], None]) -> None:
        for _ in range(3):
            broken.proxy.cut_after_send()
            until_more()
            unload(broken.standalone.admin_url, topic)
            until_more()
            broken.proxy.cut()
            until_more()

    try:
        _check(broken, topic, fault)
    finally:
        _stop(broken)
