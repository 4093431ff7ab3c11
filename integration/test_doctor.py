"""The doctor against real brokers that lack a setting."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import grpc
from integration.launcher.process import free_port
from integration.launcher.pulsar import INTERCEPTORS, Standalone
from integration.launcher.sidecar import SidecarProcess


def _doctor(standalone: Standalone) -> subprocess.CompletedProcess[str]:
    environment = {"KAFKA_SIDECAR_PULSAR__URL": standalone.url, "KAFKA_SIDECAR_PULSAR__ADMIN_URL": standalone.admin_url}
    command = [sys.executable, "-m", "kafka_sidecar", "doctor"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


LACKING = {
    "index": ({"brokerEntryMetadataInterceptors": INTERCEPTORS.split(",")[1]}, ["AppendIndexMetadataInterceptor"]),
    "time and more": (
        {
            "brokerEntryMetadataInterceptors": INTERCEPTORS.split(",")[0],
            "exposingBrokerEntryMetadataToClientEnabled": "false",
            "brokerDeleteInactiveTopicsEnabled": "true",
            "defaultRetentionTimeInMinutes": "0",
        },
        [
            "AppendBrokerTimestampMetadataInterceptor",
            "exposingBrokerEntryMetadataToClientEnabled=true",
            "brokerDeleteInactiveTopicsEnabled=false",
            "retention",
        ],
    ),
}


@pytest.mark.parametrize("lacking", LACKING)
def test_every_missing_setting_is_named_and_stops_the_start(tmp_path: Path, lacking: str) -> None:
    settings, told = LACKING[lacking]
    standalone = Standalone(tmp_path / "pulsar", settings=settings)
    standalone.start()
    try:
        done = _doctor(standalone)
        assert done.returncode == 1, done.stdout + done.stderr
        faults = [line for line in done.stdout.splitlines() if line.startswith("fault")]
        assert len(faults) == len(told), done.stdout
        for words in told:
            assert any(words in fault for fault in faults), words
        sidecar = SidecarProcess(tmp_path / "sidecar", standalone.url, standalone.admin_url)
        with pytest.raises(Exception, match="ended with code 2"):
            sidecar.start()
        assert all(words in sidecar.log.read_text() for words in told)
    finally:
        standalone.stop()


def test_missing_topic_policies_are_a_warning(tmp_path: Path) -> None:
    standalone = Standalone(tmp_path / "pulsar", settings={"topicLevelPoliciesEnabled": "false"})
    standalone.start()
    try:
        done = _doctor(standalone)
        assert done.returncode == 0, done.stdout
        assert "warning  topic policies: set topicLevelPoliciesEnabled=true" in done.stdout
    finally:
        standalone.stop()


def test_a_cluster_that_does_not_answer_is_one_sentence() -> None:
    command = [sys.executable, "-m", "kafka_sidecar", "serve", "--once"]
    environment = {"KAFKA_SIDECAR_PULSAR__URL": "pulsar://127.0.0.1:1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "check pulsar.url" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_sidecar_that_starts_before_its_cluster_waits_for_it(tmp_path: Path) -> None:
    standalone = Standalone(tmp_path / "pulsar")
    control = free_port()
    sidecar = SidecarProcess(
        tmp_path / "sidecar", standalone.url, standalone.admin_url, control__listen=f"127.0.0.1:{control}"
    )

    def health(service: str) -> bool:
        with grpc.insecure_channel(f"127.0.0.1:{control}") as channel:
            request = health_pb2.HealthCheckRequest(service=service)
            told = health_pb2_grpc.HealthStub(channel).Check(request, timeout=10, wait_for_ready=True)
        return bool(told.status == health_pb2.HealthCheckResponse.SERVING)

    sidecar.begin()
    assert [health(service) for service in ("live", "ready", "")] == [True, False, False]
    time.sleep(3)
    assert sidecar.running
    assert not sidecar.listens()
    assert sidecar.stop() == 0, "a signal does not have to wait for Pulsar"
    sidecar.begin()
    standalone.start()
    try:
        sidecar.wait()
        assert [health(service) for service in ("live", "ready", "")] == [True, True, True]
        log = sidecar.log.read_text()
        assert log.count("waiting for Pulsar") == 2, "at once, and then once a minute"
        assert "Traceback" not in log
        assert sidecar.stop() == 0
    finally:
        standalone.stop()
