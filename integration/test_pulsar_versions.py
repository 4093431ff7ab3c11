"""Each Pulsar version between the oldest and today's serves what every application does. The rest of it is tried by
`make soak`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from integration.conftest import new_topic
from integration.kafka_clients import QUIET, create, produce, read
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.members import member
from integration.patience import LONG, wait_for
from integration.support import unload
from integration.transaction_checker import read_committed
from integration.versions import BETWEEN


@pytest.mark.parametrize("version", BETWEEN)
def test_records_groups_and_transactions_outlive_an_unload_and_a_restart(version: str, tmp_path: Path) -> None:
    standalone = Standalone(tmp_path / "pulsar", version=version)
    standalone.start()
    sidecar = SidecarProcess(tmp_path / "sidecar", standalone.url, standalone.admin_url)
    sidecar.start()
    topic = new_topic()
    try:
        create(sidecar.address, topic)
        values = [b"%d" % number for number in range(200)]
        assert [ack.offset for ack in produce(sidecar.address, topic, values[:100])] == list(range(100))
        with member(sidecar.address, topic, topic) as first:
            wait_for(lambda: len(first.read) == 100)
        unload(standalone.admin_url, topic)
        sidecar.kill()
        sidecar.start()
        assert [ack.offset for ack in produce(sidecar.address, topic, values[100:])] == list(range(100, 200))
        with member(sidecar.address, topic, topic) as second:
            wait_for(lambda: len(second.read) == 100)
        assert sorted(second.read)[0] == (0, 100), "it goes on where the other was"
        assert [record.value for record in read(sidecar.address, topic, 200)] == values
        writer = Producer({"bootstrap.servers": sidecar.address, "transactional.id": topic, **QUIET})
        writer.init_transactions(60)
        for value in (b"committed", b"aborted"):
            writer.begin_transaction()
            writer.produce(topic, value, partition=0)
            writer.flush(LONG)
            (writer.commit_transaction if value == b"committed" else writer.abort_transaction)(60)
        assert [value for _, value in read_committed(sidecar.address, topic)[0]] == [*values, b"committed"]
    finally:
        sidecar.stop()
        standalone.stop()
    assert not sidecar.complaints()
