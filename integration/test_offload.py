"""Tiered storage for real: ledgers offloaded to the filesystem, their offsets told by Kafka's tools, and all of it
fetched.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from integration.conftest import new_topic
from integration.kafka_clients import bounds, create, produce, read
from integration.launcher.jars import class_path
from integration.launcher.kafka import java_tool
from integration.launcher.pulsar import OFFLOADER, Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG
from integration.support import admin, unload

# Where the filesystem offloader of Pulsar keeps ledgers, whatever its site says.
STORE = Path("/public/default/persistent")
ENTRIES_PER_LEDGER = 10
_SITE = """<configuration>
<property><name>fs.defaultFS</name><value>file:///</value></property>
<property><name>hadoop.tmp.dir</name><value>{place}</value></property>
<property><name>io.file.buffer.size</name><value>4096</value></property>
</configuration>
"""


@pytest.fixture(scope="module")
def offloading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Standalone, SidecarProcess]]:
    directory = tmp_path_factory.mktemp("offloading")
    offloaders = directory / "offloaders"
    offloaders.mkdir()
    shutil.copy(class_path(OFFLOADER), offloaders / "file-system.nar")  # the jar is the NAR
    site = directory / "site.xml"
    site.write_text(_SITE.format(place=directory / "offloaded"))
    standalone = Standalone(
        directory / "pulsar",
        settings={
            "managedLedgerOffloadDriver": "filesystem",
            "offloadersDirectory": str(offloaders),
            "narExtractionDirectory": str(directory / "nar"),
            "fileSystemURI": "file:///",
            "fileSystemProfilePath": str(site),
            "managedLedgerMaxEntriesPerLedger": str(ENTRIES_PER_LEDGER),
            "managedLedgerMinLedgerRolloverTimeMinutes": "0",
            "managedLedgerOffloadDeletionLagMs": "1000",
        },
    )
    standalone.start()
    sidecar = SidecarProcess(directory / "sidecar", standalone.url, standalone.admin_url)
    sidecar.start()
    yield standalone, sidecar
    assert sidecar.stop() == 0
    standalone.stop()


@pytest.fixture
def topic() -> Iterator[str]:
    """What the offloader has kept of it is removed in the end."""
    name = new_topic()
    yield name
    for place in (_stored(name), _stored_away(name)):
        shutil.rmtree(place, ignore_errors=True)


def _stored(topic: str) -> Path:
    return STORE / f"{topic}-partition-0"


def _stored_away(topic: str) -> Path:
    return STORE / f"{topic}-away"


def _offload(standalone: Standalone, topic: str) -> int:
    """Everything but the open ledger; how many ledgers that was."""
    place = f"{standalone.admin_url}/admin/v2/persistent/public/default/{topic}-partition-0"
    ledgers = json.loads(admin("GET", f"{place}/internalStats"))["ledgers"]
    last = max(ledger["ledgerId"] for ledger in ledgers)
    admin("PUT", f"{place}/offload", json.dumps({"ledgerId": last, "entryId": 0, "partitionIndex": -1}).encode())
    until = time.monotonic() + LONG
    while json.loads(admin("GET", f"{place}/offload"))["status"] != "SUCCESS":
        assert time.monotonic() < until, "it was not offloaded in time"
        time.sleep(0.2)
    return len(ledgers) - 1


def _asked(address: str, topic: str, time_asked: str) -> int:
    done = java_tool(
        "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", address, "--topic", topic, "--time", time_asked
    )
    if not done.stdout:  # the tool's word for none
        assert (done.returncode, done.stderr) == (0, "")
        return -1
    assert done.stdout.startswith(f"{topic}:0:"), done.stdout + done.stderr
    return int(done.stdout.strip().rpartition(":")[2])


@pytest.mark.parametrize("entry_format", ["kafka", "pulsar"])
def test_offloaded_ledgers_are_told_and_read(
    offloading: tuple[Standalone, SidecarProcess], topic: str, entry_format: str
) -> None:
    standalone, sidecar = offloading
    create(sidecar.address, topic, configs={"entry.format": entry_format})
    values = [b"%d" % number for number in range(47)]
    produce(
        sidecar.address, topic, values, settings={"batch.num.messages": 1, "max.in.flight.requests.per.connection": 1}
    )
    assert _asked(sidecar.address, topic, "latest-tiered") == -1
    offloaded = _offload(standalone, topic)
    local = offloaded * ENTRIES_PER_LEDGER
    assert local == 40
    asked = {
        name: _asked(sidecar.address, topic, name) for name in ("earliest", "earliest-local", "latest-tiered", "latest")
    }
    assert asked == {"earliest": 0, "earliest-local": local, "latest-tiered": local - 1, "latest": 47}
    assert sidecar.stop() == 0
    sidecar.start()
    assert bounds(sidecar.address, topic) == (0, 47)
    assert [record.value for record in read(sidecar.address, topic, 47)] == values
    assert [record.value for record in read(sidecar.address, topic, 30, offset=17)] == values[17:]
    assert [ack.offset for ack in produce(sidecar.address, topic, [b"next"])] == [47]


def _can_be_read(standalone: Standalone, topic: str, ledger: int) -> bool:
    """By the broker, which remembers nothing of it."""
    unload(standalone.admin_url, topic)
    try:
        admin(
            "GET",
            f"{standalone.admin_url}/admin/v2/persistent/public/default/{topic}-partition-0/ledger/{ledger}/entry/0",
        )
    except httpx.HTTPStatusError:
        return False
    return True


def test_a_store_that_is_away_takes_nothing_out_of_service_but_its_own_ledgers(
    offloading: tuple[Standalone, SidecarProcess], topic: str
) -> None:
    standalone, sidecar = offloading
    create(sidecar.address, topic)
    values = [b"%d" % number for number in range(47)]
    produce(
        sidecar.address, topic, values, settings={"batch.num.messages": 1, "max.in.flight.requests.per.connection": 1}
    )
    place = f"{standalone.admin_url}/admin/v2/persistent/public/default/{topic}-partition-0"
    first = json.loads(admin("GET", f"{place}/internalStats"))["ledgers"][0]["ledgerId"]
    _offload(standalone, topic)
    store, away = _stored(topic), _stored_away(topic)
    store.rename(away)
    until = time.monotonic() + LONG
    while _can_be_read(standalone, topic, first):  # BookKeeper keeps its copy for a second
        assert time.monotonic() < until, "BookKeeper still has the ledger"
        time.sleep(0.2)
    assert sidecar.stop() == 0
    sidecar.start()
    assert [
        ack.offset for ack in produce(sidecar.address, topic, [b"next"], settings={"enable.idempotence": True})
    ] == [47]
    assert [record.value for record in read(sidecar.address, topic, 6, offset=42)] == [*values[42:], b"next"]
    away.rename(store)
    assert [record.value for record in read(sidecar.address, topic, 48)] == [*values, b"next"]
