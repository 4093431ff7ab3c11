"""The charts on a real Kubernetes: `make test-kubernetes`, which builds it. `make test` leaves them out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

from integration.docker.images import ROOT, SPARK, make_pulsar, make_sidecar, make_spark, pulsar_image
from integration.kubernetes.cluster import Cluster, missing, waiting
from integration.launcher.jars import class_path
from integration.launcher.pulsar import SIDECAR_SETTINGS
from integration.launcher.spark import CONNECTOR
from integration.patience import wait_for
from kafka_sidecar import __version__

pytestmark = pytest.mark.kubernetes

CHART = ROOT / "deploy/helm/pulsar-kafka"
SETUPS = sorted((CHART / "ci").glob("*.yaml"))
# Operators bring these.
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
PULSAR = (
    "--set",
    "pulsar.serviceUrl=pulsar://pulsar.pulsar:6650",
    "--set",
    "pulsar.adminUrl=http://pulsar.pulsar:8080",
)
SMALL = (
    "--set",
    "image.pullPolicy=Never",
    "--set",
    "resources.requests.cpu=50m",
    "--set",
    "sidecar.resources.requests.cpu=50m",
)
BOOTSTRAP = "kafka-pulsar-kafka.streams:9092"
PARTITIONS = 8
SPARK_HOME = Path(pyspark.__file__).parent
INSTALLED = (ROOT, Path(sys.base_prefix), Path.home() / ".m2")
RETENTION = {"PULSAR_PREFIX_defaultRetentionTimeInMinutes": "60", "PULSAR_PREFIX_defaultRetentionSizeInMB": "-1"}
BROKER = {"app": "pulsar", "component": "broker"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if lacking := missing():
        pytest.fail(lacking)
    one = Cluster()
    try:
        one.start()
        for image in (make_sidecar(), make_pulsar(), make_spark()):
            one.load(image)
        namespaces = {
            "pulsar": {},
            "streams": {"pod-security.kubernetes.io/enforce": "restricted"},
            "jobs": {"kafka-sidecar/inject": "enabled"},
            "brokers": {},
            "spark": {},
        }
        one.apply(
            *(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": of}}
                for name, of in namespaces.items()
            )
        )
        # Which ci/all.yaml names.
        one.apply(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
        )
        _start_pulsar(one)
        yield one
    finally:
        one.stop()


def _start_pulsar(cluster: Cluster) -> None:
    settings = {f"PULSAR_PREFIX_{name}": value for name, value in SIDECAR_SETTINGS.items()}
    cluster.apply(
        _pod("pulsar", "pulsar", {"containers": [_broker(settings)]}, BROKER),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "pulsar", "namespace": "pulsar"},
            "spec": {"selector": BROKER, "ports": [{"name": "pulsar", "port": 6650}, {"name": "http", "port": 8080}]},
        },
    )
    cluster.wait("condition=Ready", "pulsar", "pod/pulsar")


def _broker(settings: Mapping[str, str]) -> dict[str, Any]:
    environment: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in settings.items()]
    environment.append(
        {"name": "PULSAR_PREFIX_advertisedAddress", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    )
    return {
        "name": "pulsar",
        "image": pulsar_image(),
        "imagePullPolicy": "Never",
        "env": environment,
        "command": ["sh", "-c", "bin/apply-config-from-env.py conf/standalone.conf && exec bin/pulsar standalone"],
        "readinessProbe": {
            "httpGet": {"path": "/admin/v2/namespaces/public/default", "port": 8080},
            "periodSeconds": 2,
        },
    }


def _pod(name: str, namespace: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    about = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {"automountServiceAccountToken": False, **spec},
    }


def _application(
    name: str, namespace: str, *arguments: str, shared: Path | None = None, environment: dict[str, str] | None = None
) -> Any:
    """This checkout in a pod, with what it has installed; an image with Java."""
    paths = [*INSTALLED, *([] if shared is None else [shared])]
    container = {
        "name": "application",
        "image": pulsar_image(),
        "imagePullPolicy": "Never",
        "workingDir": str(ROOT),
        "command": [sys.executable, "-m", "integration.kubernetes.in_a_pod", *arguments],
        "env": [{"name": key, "value": value} for key, value in {"HOME": "/home", **(environment or {})}.items()],
        "volumeMounts": [{"name": f"host-{number}", "mountPath": str(path)} for number, path in enumerate(paths)],
    }
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
    cluster.apply(
        _application("load", "pulsar", "load", BOOTSTRAP, topic, str(PARTITIONS), str(tmp_path), shared=tmp_path)
    )
    cluster.wait("condition=Ready", "pulsar", "pod/load")
    waiting(lambda: (tmp_path / "flows").exists(), 120, lambda: cluster.told("pulsar"))
    # Its settings are others, so all of its pods are made anew, one after the other.
    changed = ("--set", "config.kafka.entry_format=kafka", "--set", "logFormat=text")
    before = pods(cluster)
    cluster.helm("upgrade", "kafka", str(CHART), "--namespace", "streams", *PULSAR, *SMALL, *changed)
    cluster.kubectl("rollout", "status", f"statefulset/{name}", "-n", "streams", "--timeout=6m", seconds=400)
    assert len(pods(cluster)) == 3
    assert not before & pods(cluster), "all of them are new"
    (tmp_path / "stop").touch()  # more must be acknowledged before it stops
    waiting(lambda: cluster.phase("load", "pulsar") in ("Succeeded", "Failed"), 180, lambda: cluster.told("pulsar"))
    assert cluster.phase("load", "pulsar") == "Succeeded", cluster.told("pulsar")
    result = json.loads((tmp_path / "result.json").read_text())
    print(result)
    assert not result["failed"]
    assert result["records"] > 1_000
    assert not result["timed_out"], "each request was answered, by one pod or by its successor"


def test_a_second_release_joins_the_fleet(cluster: Cluster) -> None:
    base = ("--set", "gateway.replicas=1", "--set", "config.kafka.node_id_base=1000")
    cluster.helm(
        "install", "second", str(CHART), "--namespace", "streams", *PULSAR, *SMALL, *base, "--wait", "--timeout", "2m"
    )
    for release in ("kafka", "second"):
        asked = ("exec", f"{release}-pulsar-kafka-0", "-n", "streams", "--", "kafka-sidecar", "ctl", "fleet", "--json")

        def sees(asked: tuple[str, ...] = asked) -> list[int]:
            return [member["node_id"] for member in json.loads(cluster.kubectl(*asked)) if member["leads"]]

        wait_for(lambda: sees() == [0, 1, 2, 1000])
    cluster.helm("uninstall", "second", "--namespace", "streams", "--wait")


def pods(cluster: Cluster) -> set[str]:
    """Of the gateway: what identifies them."""
    return {
        pod["metadata"]["uid"]
        for pod in cluster.items("pods", "-n", "streams")
        if re.fullmatch(r"kafka-pulsar-kafka-\d", pod["metadata"]["name"])
    }


def _make_topic(cluster: Cluster, topic: str) -> None:
    """With Pulsar's own words: its admin API through its pod."""
    address = f"http://127.0.0.1:8080/admin/v2/persistent/public/default/{topic}/partitions"
    make = (
        "import urllib.request; urllib.request.urlopen(urllib.request.Request("
        f"'{address}', b'{PARTITIONS}', {{'Content-Type': 'application/json'}}, method='PUT'))"
    )
    cluster.kubectl("exec", "pulsar", "-n", "pulsar", "--", "python3", "-c", make)


def test_a_spark_job_finds_kafka_beside_it_and_its_pod_completes(cluster: Cluster) -> None:
    inject = (
        "--set",
        "gateway.enabled=false",
        "--set",
        "sidecar.inject.enabled=true",
        "--set",
        "config.kafka.auto_create_topics=true",
    )
    said = cluster.helm("install", "beside", str(CHART), "--namespace", "pulsar", *PULSAR, *SMALL, *inject)
    assert "kubectl label namespace NAME kafka-sidecar/inject=enabled" in said
    topic = f"source-{time.time_ns()}"

    def made(**spec: Any) -> Any:
        of_pod = {"containers": [{"name": "application", "image": "application:1"}], **spec.pop("spec", {})}
        pod = _pod("asked", "jobs", of_pod, **spec)
        return json.loads(
            cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", given=yaml.safe_dump(pod))
        )["spec"]

    def names(spec: Any) -> list[str]:
        return [one["name"] for one in spec.get("initContainers", ())]

    wait_for(lambda: names(made()) == ["kafka-sidecar"])  # an API server takes a moment to use a policy
    assert names(made(spec={"initContainers": [{"name": "own", "image": "own:1"}]})) == ["kafka-sidecar", "own"]
    assert names(made(spec={"hostNetwork": True})) == []
    assert names(made(labels={"kafka-sidecar/inject": "false"})) == []
    assert names(made(spec={"initContainers": [{"name": "kafka-sidecar", "image": "own:1"}]})) == ["kafka-sidecar"]
    of_a_gateway = {"containers": [{"name": "kafka-sidecar", "image": "own:1"}]}
    assert names(made(spec=of_a_gateway)) == [], "names are unique among all containers of a pod"
    sidecar = made()["initContainers"][0]
    assert (sidecar["image"], sidecar["restartPolicy"]) == (f"kafka-sidecar:{__version__}", "Always")

    local = {"PYSPARK_SUBMIT_ARGS": f"--master local[2] --jars {class_path(CONNECTOR).replace(':', ',')} pyspark-shell"}
    cluster.apply(_application("writer", "jobs", "fill", "localhost:9092", topic))
    waiting(lambda: cluster.phase("writer", "jobs") in ("Succeeded", "Failed"), 120, lambda: cluster.told("jobs"))
    cluster.apply(_application("job", "jobs", "spark", "localhost:9092", topic, f"{topic}-copy", environment=local))
    waiting(lambda: cluster.phase("job", "jobs") in ("Succeeded", "Failed"), 240, lambda: cluster.told("jobs"))
    pod = cluster.get("pod", "job", "jobs")
    assert pod["status"]["phase"] == "Succeeded", cluster.told("jobs")
    assert pod["metadata"]["labels"]["kafka-sidecar/injected"] == "beside"
    (ended,) = pod["status"]["initContainerStatuses"]
    assert (ended["state"]["terminated"]["exitCode"], ended["restartCount"]) == (0, 0)
    assert "1000 records copied" in cluster.kubectl("logs", "job", "-n", "jobs", "-c", "application")


def test_spark_runs_its_driver_and_its_executors_from_the_pod_templates(cluster: Cluster, tmp_path: Path) -> None:
    """`spark-submit` with `--deploy-mode cluster`, as the pages have it."""
    templates = ("--set", "gateway.enabled=false", "--set", "spark.podTemplate.enabled=true")
    topics = ("--set", "config.kafka.auto_create_topics=true")
    cluster.helm("install", "kafka", str(CHART), "--namespace", "spark", *PULSAR, *SMALL, *templates, *topics)
    files = cluster.get("configmap", "kafka-pulsar-kafka-spark", "spark")["data"]
    for name in ("driver", "executor"):
        (tmp_path / f"{name}.yaml").write_text(files[f"{name}.yaml"])
    cluster.kubectl("create", "serviceaccount", "driver", "-n", "spark")
    cluster.kubectl(
        "create", "rolebinding", "driver", "-n", "spark", "--clusterrole=edit", "--serviceaccount=spark:driver"
    )
    topic = f"source-{time.time_ns()}"
    _make_topic(cluster, topic)
    cluster.apply(_application("writer", "pulsar", "fill", BOOTSTRAP, topic))
    waiting(lambda: cluster.phase("writer", "pulsar") in ("Succeeded", "Failed"), 120, lambda: cluster.told("pulsar"))
    settings = _spark_settings(cluster)
    settings |= {
        f"kubernetes.{role}.podTemplateFile": str(tmp_path / f"{role}.yaml") for role in ("driver", "executor")
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"spark.{name}={value}")]
    program = [f"local://{ROOT}/integration/kubernetes/in_a_pod.py", "spark", "localhost:9092", topic, f"{topic}-copy"]
    submit = [
        str(SPARK_HOME / "bin/spark-submit"),
        "--master",
        f"k8s://{cluster.address}",
        "--deploy-mode",
        "cluster",
        *options,
        *program,
    ]
    done = subprocess.run(submit, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stderr[-4_000:]}\n{cluster.told('spark')}"
    waiting(lambda: cluster.phase("copies", "spark") in ("Succeeded", "Failed"), 240, lambda: cluster.told("spark"))
    pod = cluster.get("pod", "copies", "spark")
    assert pod["status"]["phase"] == "Succeeded", cluster.told("spark")
    (sidecar,) = (one for one in pod["status"]["initContainerStatuses"] if one["name"] == "kafka-sidecar")
    assert (sidecar["state"]["terminated"]["exitCode"], sidecar["restartCount"]) == (0, 0)
    log = cluster.kubectl("logs", "copies", "-n", "spark", "-c", "spark-kubernetes-driver")
    assert "1000 records copied" in log
    assert "Registered executor" in log, "executors of their own have read and written"


def _spark_settings(cluster: Cluster) -> dict[str, str]:
    """Of a job whose pods have this checkout's Spark. Debian's etcd is too old for the way in which spark-submit
    waits.
    """
    settings = {
        "kubernetes.namespace": "spark",
        "kubernetes.container.image": SPARK,
        "kubernetes.container.image.pullPolicy": "Never",
        "kubernetes.authenticate.submission.caCertFile": str(cluster.certificate),
        "kubernetes.authenticate.submission.oauthToken": cluster.token,
        "kubernetes.authenticate.driver.serviceAccountName": "driver",
        "kubernetes.driver.pod.name": "copies",
        "kubernetes.driver.request.cores": "0.1",
        "kubernetes.executor.request.cores": "0.1",
        "kubernetes.submission.waitAppCompletion": "false",
        "driver.memory": "512m",
        "executor.memory": "512m",
        "executor.instances": "2",
        "jars": ",".join(f"local://{jar}" for jar in class_path(CONNECTOR).split(":")),
        "kubernetes.driverEnv.PYSPARK_PYTHON": sys.executable,
        "kubernetes.driverEnv.PYTHONPATH": str(ROOT),
        "kubernetes.driverEnv.SPARK_HOME": str(SPARK_HOME),
        "executorEnv.SPARK_HOME": str(SPARK_HOME),
    }
    for role in ("driver", "executor"):
        for number, path in enumerate(INSTALLED):
            volume = f"kubernetes.{role}.volumes.hostPath.of-the-host-{number}"
            settings |= {f"{volume}.mount.path": str(path), f"{volume}.options.path": str(path)}
    return settings


def test_a_broker_has_a_sidecar_beside_it_that_outlives_it(cluster: Cluster) -> None:
    beside = (
        "--set",
        "gateway.enabled=false",
        "--set",
        "brokerSidecar.enabled=true",
        "--set",
        "brokerSidecar.resources.requests.cpu=50m",
    )
    cluster.helm("install", "kafka", str(CHART), "--namespace", "brokers", *SMALL, *beside)
    values = yaml.safe_load(cluster.get("configmap", "kafka-pulsar-kafka-brokers", "brokers")["data"]["values.yaml"])[
        "broker"
    ]
    # What the Pulsar chart makes of them. The sidecar does not start without the settings of the overlay; retention is
    # the operator's.
    broker = {
        "terminationGracePeriodSeconds": values["gracePeriod"],
        "initContainers": values["initContainers"],
        "containers": [_broker({**RETENTION, **values["configData"]})],
    }
    about = {"name": "pulsar-broker", "namespace": "brokers"}
    template = {"metadata": {"labels": BROKER}, "spec": broker}
    selected = {"serviceName": "pulsar-broker-headless", "selector": {"matchLabels": BROKER}, "replicas": 1}
    headless = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": BROKER,
        "ports": [{"name": "pulsar", "port": 6650}],
    }
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**about, "name": "pulsar-broker-headless"},
            "spec": headless,
        },
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": about, "spec": {**selected, "template": template}},
    )
    waiting(lambda: bool(cluster.items("pod", "-n", "brokers")), 30, lambda: cluster.told("brokers"))
    cluster.wait("condition=Ready", "brokers", "pod/pulsar-broker-0")
    of_the_sidecar = ("exec", "pulsar-broker-0", "-n", "brokers", "-c", "kafka-sidecar", "--", "kafka-sidecar")
    wait_for(lambda: "Pulsar is ready for Kafka clients." in cluster.kubectl(*of_the_sidecar, "doctor"))
    bootstrap = "kafka-pulsar-kafka-brokers.brokers:9092"
    assert "read back after" in cluster.kubectl(*of_the_sidecar, "try", "--bootstrap-server", bootstrap)
    (member,) = json.loads(cluster.kubectl(*of_the_sidecar, "ctl", "fleet", "--json"))
    assert member["host"] == "pulsar-broker-0.pulsar-broker-headless.brokers.svc.cluster.local"
