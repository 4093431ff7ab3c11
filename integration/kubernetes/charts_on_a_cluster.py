"""The charts on a real Kubernetes: `make test-kubernetes`. Not among the ordinary tests, as it takes a while to build a Kubernetes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler import __version__
from integration.docker.images import ROOT, make_pulsar, make_sidecar, pulsar_image
from integration.kubernetes.cluster import Cluster, missing, waiting
from integration.launcher.jars import class_path
from integration.launcher.pulsar import SIDECAR_SETTINGS
from integration.launcher.spark import CONNECTOR
from integration.members import wait_for

CHART = ROOT / "deploy/helm/pulsar-kafka"
SETUPS = sorted((CHART / "ci").glob("*.yaml"))
# Operators bring these.
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
PULSAR = ("--set", "pulsar.serviceUrl=pulsar://pulsar.pulsar:6650", "--set", "pulsar.adminUrl=http://pulsar.pulsar:8080")
SMALL = ("--set", "image.pullPolicy=Never", "--set", "resources.requests.cpu=50m", "--set", "sidecar.resources.requests.cpu=50m")
BOOTSTRAP = "kafka-pulsar-kafka.streams:9092"
PARTITIONS = 8


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if lacking := missing():
        pytest.fail(lacking)
    one = Cluster()
    try:
        one.start()
        for image in (make_sidecar(), make_pulsar()):
            one.load(image)
        namespaces = {
            "pulsar": {},
            "streams": {"pod-security.kubernetes.io/enforce": "restricted"},
            "jobs": {"kafka-sidecar/inject": "enabled"},
        }
        one.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": of}} for name, of in namespaces.items()))
        _start_pulsar(one)
        yield one
    finally:
        one.stop()


def _start_pulsar(cluster: Cluster) -> None:
    environment: list[dict[str, Any]] = [{"name": f"PULSAR_PREFIX_{name}", "value": value} for name, value in SIDECAR_SETTINGS.items()]
    environment.append({"name": "PULSAR_PREFIX_advertisedAddress", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
    broker = {
        "name": "pulsar", "image": pulsar_image(), "imagePullPolicy": "Never", "env": environment,
        "command": ["sh", "-c", "bin/apply-config-from-env.py conf/standalone.conf && exec bin/pulsar standalone"],
        "readinessProbe": {"httpGet": {"path": "/admin/v2/namespaces/public/default", "port": 8080}, "periodSeconds": 2},
    }  # fmt: skip
    labels = {"app": "pulsar", "component": "broker"}
    cluster.apply(
        _pod("pulsar", "pulsar", {"containers": [broker]}, labels),
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "pulsar", "namespace": "pulsar"},
            "spec": {"selector": labels, "ports": [{"name": "pulsar", "port": 6650}, {"name": "http", "port": 8080}]},
        },
    )  # fmt: skip
    cluster.wait("condition=Ready", "pulsar", "pod/pulsar")


def _pod(name: str, namespace: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    about = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"automountServiceAccountToken": False, **spec}}


def _application(name: str, namespace: str, *arguments: str, shared: Path | None = None, environment: dict[str, str] | None = None) -> Any:
    """This checkout in a pod, with what it has installed; an image with Java."""
    paths = [ROOT, Path(sys.base_prefix), Path.home() / ".m2", *([] if shared is None else [shared])]
    container = {
        "name": "application", "image": pulsar_image(), "imagePullPolicy": "Never", "workingDir": str(ROOT),
        "command": [sys.executable, "-m", "integration.kubernetes.in_a_pod", *arguments],
        "env": [{"name": key, "value": value} for key, value in {"HOME": "/home", **(environment or {})}.items()],
        "volumeMounts": [{"name": f"host-{number}", "mountPath": str(path)} for number, path in enumerate(paths)],
    }  # fmt: skip
    volumes = [{"name": f"host-{number}", "hostPath": {"path": str(path)}} for number, path in enumerate(paths)]
    return _pod(name, namespace, {"restartPolicy": "Never", "containers": [container], "volumes": volumes})


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.stem)
def test_the_api_server_takes_every_set_up(cluster: Cluster, setup: Path) -> None:
    rendered = cluster.helm("template", "kafka", str(CHART), "--namespace", "streams", "--values", str(setup))
    documents = [one for one in yaml.safe_load_all(rendered) if one and one["kind"] not in FOREIGN]
    cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=yaml.safe_dump_all(documents))


def test_applications_see_nothing_of_an_upgrade_of_the_gateway(cluster: Cluster, tmp_path: Path) -> None:
    cluster.helm("install", "kafka", str(CHART), "--namespace", "streams", *PULSAR, *SMALL, "--wait", "--timeout", "4m")
    assert "read back after" in cluster.helm("test", "kafka", "--namespace", "streams", "--logs")
    (gateway,) = cluster.items("statefulset", "-n", "streams")
    assert gateway["status"]["readyReplicas"] == 3
    name = gateway["metadata"]["name"]
    in_a_pod = ("exec", f"{name}-0", "-n", "streams", "--", "kafka-sidecar")
    assert "Pulsar is ready for Kafka clients." in cluster.kubectl(*in_a_pod, "doctor")
    members = json.loads(cluster.kubectl(*in_a_pod, "ctl", "fleet", "--json"))
    assert [member["node_id"] for member in members] == [0, 1, 2]
    topic = f"load-{time.time_ns()}"
    _make_topic(cluster, topic)
    cluster.apply(_application("load", "pulsar", "load", BOOTSTRAP, topic, str(PARTITIONS), str(tmp_path), shared=tmp_path))
    cluster.wait("condition=Ready", "pulsar", "pod/load")
    time.sleep(10)
    # Its settings are others, so all of its pods are made anew, one after the other.
    changed = ("--set", "config.kafka.entry_format=kafka", "--set", "logFormat=text")
    cluster.helm("upgrade", "kafka", str(CHART), "--namespace", "streams", *PULSAR, *SMALL, *changed)
    cluster.kubectl("rollout", "status", f"statefulset/{name}", "-n", "streams", "--timeout=6m", seconds=400)
    time.sleep(10)
    (tmp_path / "stop").touch()
    waiting(lambda: cluster.phase("load", "pulsar") in ("Succeeded", "Failed"), 180, lambda: cluster.told("pulsar"))
    assert cluster.phase("load", "pulsar") == "Succeeded", cluster.told("pulsar")
    result = json.loads((tmp_path / "result.json").read_text())
    print(result)
    assert not result["failed"]
    assert result["records"] > 1_000
    assert all(seconds < 4 for seconds, _, _ in result["pauses"]), result["pauses"]


def _make_topic(cluster: Cluster, topic: str) -> None:
    """With Pulsar's own words: its admin API through its pod."""
    address = f"http://127.0.0.1:8080/admin/v2/persistent/public/default/{topic}/partitions"
    make = (
        "import urllib.request; urllib.request.urlopen(urllib.request.Request("
        f"'{address}', b'{PARTITIONS}', {{'Content-Type': 'application/json'}}, method='PUT'))"
    )
    cluster.kubectl("exec", "pulsar", "-n", "pulsar", "--", "python3", "-c", make)


def test_a_spark_job_finds_kafka_beside_it_and_its_pod_completes(cluster: Cluster) -> None:
    inject = ("--set", "gateway.enabled=false", "--set", "sidecar.inject.enabled=true", "--set", "config.kafka.auto_create_topics=true")
    said = cluster.helm("install", "beside", str(CHART), "--namespace", "pulsar", *PULSAR, *SMALL, *inject)
    assert "kubectl label namespace NAME kafka-sidecar/inject=enabled" in said
    topic = f"source-{time.time_ns()}"

    def made(**spec: Any) -> Any:
        of_pod = {"containers": [{"name": "application", "image": "application:1"}], **spec.pop("spec", {})}
        pod = _pod("asked", "jobs", of_pod, **spec)
        return json.loads(cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", given=yaml.safe_dump(pod)))["spec"]

    def names(spec: Any) -> list[str]:
        return [one["name"] for one in spec.get("initContainers", ())]

    wait_for(lambda: names(made()) == ["kafka-sidecar"], 60)  # an API server takes a moment to use a policy
    assert names(made(spec={"initContainers": [{"name": "own", "image": "own:1"}]})) == ["kafka-sidecar", "own"]
    assert names(made(spec={"hostNetwork": True})) == []
    assert names(made(labels={"kafka-sidecar/inject": "false"})) == []
    assert names(made(spec={"initContainers": [{"name": "kafka-sidecar", "image": "own:1"}]})) == ["kafka-sidecar"]
    sidecar = made()["initContainers"][0]
    assert (sidecar["image"], sidecar["restartPolicy"]) == (f"kafka-sidecar:{__version__}", "Always")

    jars = {"SPARK_JARS": class_path(CONNECTOR).replace(":", ",")}
    cluster.apply(_application("writer", "jobs", "fill", "localhost:9092", topic))
    waiting(lambda: cluster.phase("writer", "jobs") in ("Succeeded", "Failed"), 120, lambda: cluster.told("jobs"))
    cluster.apply(_application("job", "jobs", "spark", "localhost:9092", topic, f"{topic}-copy", environment=jars))
    waiting(lambda: cluster.phase("job", "jobs") in ("Succeeded", "Failed"), 240, lambda: cluster.told("jobs"))
    pod = cluster.get("pod", "job", "jobs")
    assert pod["status"]["phase"] == "Succeeded", cluster.told("jobs")
    assert pod["metadata"]["labels"]["kafka-sidecar/injected"] == "beside"
    (ended,) = pod["status"]["initContainerStatuses"]
    assert (ended["state"]["terminated"]["exitCode"], ended["restartCount"]) == (0, 0)
    assert "1000 records copied" in cluster.kubectl("logs", "job", "-n", "jobs", "-c", "application")
