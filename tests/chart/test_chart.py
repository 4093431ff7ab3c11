"""The Helm chart in all set-ups: valid for every supported Kubernetes, restricted, and of one piece."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from helm_python import lint

from kafka_sidecar import __version__
from kafka_sidecar.config import Config, load
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.testing.container import BROKER_SETTINGS
from tests.chart.rendering import CHART, GOLDEN, SETUPS, Document, HelmError, Rendered, render, values_of

OLDEST, NEWEST = "1.30", "1.37"
# Their schemas are not Kubernetes' own.
MONITORING = {"ServiceMonitor", "PrometheusRule"}
ADMISSION = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}


@pytest.fixture(params=SETUPS, ids=lambda setup: setup.stem)
def setup(request: pytest.FixtureRequest) -> Rendered:
    return render(values_of(request.param))


@pytest.fixture(scope="module")
def everything() -> Rendered:
    return render(values_of(CHART / "ci/all.yaml"))


def environment(container: Document) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.stem)
def test_helm_finds_nothing_to_say(setup: Path) -> None:
    said = lint(CHART, values=values_of(setup))
    assert not [one for one in said.get("messages", ()) if "icon" not in str(one)], said


def test_every_document_is_valid_for_the_oldest_and_the_newest_kubernetes(setup: Rendered) -> None:
    documents = [*setup.documents]
    documents += [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": where}, "spec": _complete(spec)}
        for where, spec in setup.pod_specs()
    ]
    for document in documents:
        if document["kind"] in MONITORING:
            continue
        for version in (OLDEST, NEWEST):
            if document["kind"] in ADMISSION and (version == OLDEST or document["apiVersion"].endswith("beta1")):
                version = "1.35" if document["apiVersion"].endswith("beta1") else "1.36"
            kubernetes_validate.validate(dict(document), version, strict=True)


def _complete(spec: Document) -> dict[str, Any]:
    """A pod template of Spark, or of a broker, has its containers from elsewhere."""
    return {"containers": [{"name": "application", "image": "application:1"}], **spec}


def test_every_container_keeps_the_restricted_profile(setup: Rendered) -> None:
    for where, container in setup.containers():
        context = container["securityContext"]
        assert context["runAsNonRoot"], where
        assert context["runAsUser"] > 0, where
        assert context["readOnlyRootFilesystem"], where
        assert context["allowPrivilegeEscalation"] is False, where
        assert context["capabilities"] == {"drop": ["ALL"]}, where
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}, where
        assert container["resources"]["limits"].keys() == {"memory"}, f"{where}: no limit of the processor"
        assert not container["image"].endswith(":latest"), where
    for where, spec in setup.pod_specs():
        if where in ("StatefulSet", "Pod"):
            assert spec["automountServiceAccountToken"] is False


def test_what_is_selected_is_there_and_what_is_named_once(setup: Rendered) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in setup.documents]
    assert len(names) == len(set(names))
    for stateful in setup.all("StatefulSet"):
        labels = stateful["spec"]["template"]["metadata"]["labels"]
        ports = {
            port["name"]
            for container in stateful["spec"]["template"]["spec"]["containers"]
            for port in container["ports"]
        }
        assert stateful["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert ("Service", stateful["spec"]["serviceName"]) in names
        for service in setup.all("Service"):
            if service["metadata"]["name"].endswith("-brokers"):
                continue
            selector = {
                name: value
                for name, value in service["spec"]["selector"].items()
                if not name.startswith("statefulset.")
            }
            assert selector.items() <= labels.items()
            assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
        for volume in stateful["spec"]["template"]["spec"]["volumes"]:
            assert "configMap" not in volume or ("ConfigMap", volume["configMap"]["name"]) in names
    assert all(
        one["metadata"].get("namespace") == "streams" or one["kind"] in ADMISSION
        for one in setup.documents
        if "-more" not in one["metadata"]["name"]
    )


def test_the_program_takes_the_settings_of_every_way(setup: Rendered, tmp_path: Path) -> None:
    for config in (one for one in setup.all("ConfigMap") if "sidecar.toml" in one["data"]):
        file = tmp_path / "sidecar.toml"
        file.write_text(config["data"]["sidecar.toml"])
        in_force(setup.sidecar("StatefulSet"), file)
    for where, container in setup.containers():
        if container["name"] == "kafka-sidecar" and where != "StatefulSet":
            in_force(container, None)


def in_force(container: Document, file: Path | None) -> Config:
    """What the program makes of it in a pod."""
    pod = {
        "POD_IP": "10.0.0.7",
        "POD_NAME": "kafka-pulsar-kafka-1",
        "POD_NAMESPACE": "streams",
        "HOST_IP": "192.168.0.3",
    }
    given = {"KAFKA_SIDECAR_KAFKA__NODE_ID": "1", **environment(container)}
    expanded = {name: re.sub(r"\$\((\w+)\)", lambda found: pod[found[1]], value) for name, value in given.items()}
    return load(file, expanded)


def test_a_gateway_pod_knows_its_addresses(tmp_path: Path) -> None:
    rendered = render(values_of(CHART / "ci/nodeport.yaml"))
    file = tmp_path / "sidecar.toml"
    file.write_text(rendered.one("ConfigMap")["data"]["sidecar.toml"])
    config = in_force(rendered.sidecar("StatefulSet"), file)
    assert config.kafka.advertised == "kafka-pulsar-kafka-1.kafka-pulsar-kafka-nodes.streams.svc.cluster.local:9092"
    assert config.kafka.own_external_advertised == "192.168.0.3:31091"
    assert config.control.advertised == "10.0.0.7:9095"
    assert (config.limits.handover_seconds, config.limits.drain_seconds) == (5, 20)
    services = [one for one in rendered.all("Service") if "-external-" in one["metadata"]["name"]]
    assert [one["spec"]["ports"][0]["nodePort"] for one in services] == [31090, 31091]
    pods = [one["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] for one in services]
    assert pods == ["kafka-pulsar-kafka-0", "kafka-pulsar-kafka-1"]


def test_settings_of_the_user_arrive_as_they_are(everything: Rendered, tmp_path: Path) -> None:
    file = tmp_path / "sidecar.toml"
    file.write_text(
        next(one for one in everything.all("ConfigMap") if "sidecar.toml" in one["data"])["data"]["sidecar.toml"]
    )
    config = in_force(everything.sidecar("StatefulSet"), file)
    assert (config.limits.cache_bytes, config.limits.connection_idle_seconds) == (134_217_728, 300.5)
    assert (config.kafka.auto_create_topics, config.kafka.default_partitions, config.groups.mirror) == (True, 12, "*")
    assert config.kafka.own_external_advertised == "kafka-pulsar-kafka-1.kafka.example.com:19094"
    assert config.telemetry.log_level == "DEBUG"


def test_beside_others_the_sidecar_is_native_and_asks_nothing_of_pulsar(tmp_path: Path) -> None:
    rendered = render(
        {"gateway": {"enabled": False}, "spark": {"podTemplate": {"enabled": True}}, "brokerSidecar": {"enabled": True}}
    )
    spark = rendered.sidecar("driver.yaml")
    assert spark == rendered.sidecar("executor.yaml")
    for container in (spark, rendered.sidecar("values.yaml")):
        assert container["restartPolicy"] == "Always"
        assert "readinessProbe" not in container
        assert "lifecycle" not in container, "what ends a native sidecar early has it started again"
        assert container["startupProbe"]["grpc"]["service"] == "live"
    assert in_force(spark, None).kafka.listen == "127.0.0.1:9092"
    assert in_force(spark, None).limits.cache_bytes == 16 * 1024 * 1024
    broker = in_force(rendered.sidecar("values.yaml"), None)
    assert broker.pulsar.url == "pulsar://127.0.0.1:6650,pulsar-broker-headless:6650", (
        "the broker beside it stops before it"
    )
    assert broker.pulsar.admin_url == "http://127.0.0.1:8080,http://pulsar-broker-headless:8080"
    assert broker.kafka.advertised == "kafka-pulsar-kafka-1.pulsar-broker-headless.streams.svc.cluster.local:9092"


def test_brokers_get_the_settings_that_the_sidecar_needs() -> None:
    brokers = render({"gateway": {"enabled": False}, "brokerSidecar": {"enabled": True}}).one("ConfigMap", "-brokers")
    overlay = yaml.safe_load(brokers["data"]["values.yaml"])["broker"]
    settings = {name.removeprefix("PULSAR_PREFIX_"): value for name, value in overlay["configData"].items()}
    needed = {
        "brokerEntryMetadataInterceptors",
        "exposingBrokerEntryMetadataToClientEnabled",
        "brokerDeleteInactiveTopicsEnabled",
    }
    assert settings == {name: BROKER_SETTINGS[name] for name in needed}


def test_an_application_waits_for_pulsar_on_wish(everything: Rendered) -> None:
    spark = everything.sidecar("driver.yaml")
    assert spark["startupProbe"]["grpc"]["service"] == spark["readinessProbe"]["grpc"]["service"] == "ready"


def test_what_is_injected_is_what_spark_gets(everything: Rendered) -> None:
    expression = everything.one("MutatingAdmissionPolicy")["spec"]["mutations"][0]["jsonPatch"]["expression"]
    container = everything.sidecar("driver.yaml")
    assert f'image: "{container["image"]}"' in expression
    assert 'restartPolicy: "Always"' in expression
    assert (
        'resources: Object.spec.initContainers.resources{limits: {"memory": "512Mi"}, requests: {"cpu": "100m", '
        '"memory": "192Mi"}}' in expression
    )
    for name, value in environment(container).items():
        assert f"Object.spec.initContainers.env{{name: {json.dumps(name)}, value: {json.dumps(value)}}}" in expression


def test_values_of_ones_own_go_instead_of_defaults_and_not_beside_them() -> None:
    beside = {"enabled": True, "selector": {"role": "broker"}}
    inject = {"enabled": True, "namespaceLabel": {"team": "streams"}}
    rendered = render({"gateway": {"enabled": False}, "brokerSidecar": beside, "sidecar": {"inject": inject}})
    assert rendered.one("Service", "-brokers")["spec"]["selector"] == {"role": "broker"}
    matched = rendered.one("MutatingAdmissionPolicy")["spec"]["matchConstraints"]["namespaceSelector"]["matchLabels"]
    assert matched == {"team": "streams"}
    assert "kubectl label namespace NAME team=streams;" in rendered.notes


def test_a_load_balancer_listens_where_clients_are_told_to_go() -> None:
    external = {"type": "LoadBalancer", "addresses": ["a.example:19092", "b.example:19093", "c.example:443"]}
    rendered = render({"listeners": {"external": external}})
    ports = [rendered.one("Service", f"-external-{index}")["spec"]["ports"][0] for index in range(3)]
    assert [(port["port"], port["targetPort"]) for port in ports] == [
        (19092, "kafka-external"),
        (19093, "kafka-external"),
        (443, "kafka-external"),
    ]
    assert "bootstrap.servers=a.example:19092,b.example:19093,c.example:443\n" in rendered.notes


def test_where_addresses_are_of_ipv6_it_listens_on_these(tmp_path: Path) -> None:
    rendered = render({"listenAddress": "::"})
    file = tmp_path / "sidecar.toml"
    file.write_text(rendered.one("ConfigMap")["data"]["sidecar.toml"])
    config = in_force(rendered.sidecar("StatefulSet"), file)
    assert config.kafka.listen == "[::]:9092"
    assert config.control.listen_address == ("::", 9095)


def test_pods_are_not_kept_from_moving(everything: Rendered) -> None:
    assert everything.one("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert not render({"gateway": {"replicas": 1}}).all("PodDisruptionBudget"), (
        "a budget for one pod keeps its node from being drained"
    )
    assert "replicas" not in everything.one("StatefulSet")["spec"], "an upgrade would undo what the autoscaler did"


def test_rules_and_pictures_name_metrics_that_there_are(everything: Rendered) -> None:
    known = {
        f"kafka_sidecar_{name}" for name in re.findall(r'"kafka_sidecar_(\w+)"', Path(metrics.__file__).read_text())
    }
    rules = everything.one("PrometheusRule")["spec"]["groups"][0]["rules"]
    dashboard = json.loads(everything.one("ConfigMap", "-dashboard")["data"]["kafka-sidecar.json"])
    asked = [rule["expr"] for rule in rules] + [
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    ]
    named = {
        re.sub(r"_(bucket|count|sum)$", "", name) for text in asked for name in re.findall(r"kafka_sidecar_\w+", text)
    }
    assert named
    assert named <= known | {f"{name}_total" for name in known}
    assert "{{ $labels.pod }}" in rules[0]["annotations"]["description"]


def test_the_chart_is_of_the_programs_version() -> None:
    for chart in (CHART, CHART.parent / "sidecar-lib"):
        about = yaml.safe_load((chart / "Chart.yaml").read_text())
        assert about["appVersion"] == __version__
        assert about["version"] == re.sub(r"\.dev", "-dev", __version__), "as semantic versions have it"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"terminationGracePeriodSeconds": 30}, "terminationGracePeriodSeconds is 30: .* make 35"),
        ({"listeners": {"external": {"type": "LoadBalancer"}}}, "clients from outside need addresses"),
        ({"listeners": {"external": {"type": "LoadBalancer", "addresses": ["a:1"]}}}, "has 1 addresses for 3 pods"),
        (
            {"listeners": {"external": {"type": "LoadBalancer", "nodePorts": [1, 2, 3]}}},
            "nodePorts is for the type NodePort",
        ),
        ({"listeners": {"external": {"type": "NodePort", "nodePorts": [1]}}}, "has 1 ports for 3 pods"),
        ({"control": {"port": 9092}}, "use a port twice"),
        ({"listeners": {"external": {"type": "NodePort", "domain": "a.example"}}}, "the type NodePort needs nodePorts"),
        (
            {"listeners": {"sidecar": {"port": 9090}}, "spark": {"podTemplate": {"enabled": True}}},
            "which control or metrics has",
        ),
        (
            {"networkPolicy": {"restrictEgress": True}, "pulsar": {"serviceUrl": "pulsar://a"}},
            "restrictEgress needs the ports",
        ),
        ({"sidecar": {"config": {"kafak": {}}}}, "kafak"),
        (
            {"sidecar": {"inject": {"enabled": True}}, "extraVolumeMounts": [{"name": "a"}]},
            "pods of others do not have the volumes",
        ),
        (
            {"sidecar": {"inject": {"enabled": True}}, "envFrom": [{"secretRef": {"name": "a"}}]},
            "Mark them as optional",
        ),
        (
            {"sidecar": {"gateAppReadiness": True}, "probes": {"startup": {"enabled": False}}},
            "needs probes.startup.enabled",
        ),
        (
            {"gateway": {"enabled": False}, "brokerSidecar": {"enabled": True}, "drainSeconds": 40},
            "gracePeriod is 75: .* make 80",
        ),
        (
            {"gateway": {"enabled": False}, "networkPolicy": {"enabled": True}},
            "networkPolicy.enabled: only a gateway has that",
        ),
        (
            {"metrics": {"enabled": False}, "prometheusRule": {"enabled": True}},
            "prometheusRule.enabled needs metrics.enabled",
        ),
        ({"env": [{"name": "KAFKA_SIDECAR_LIMITS__DRAIN_SECONDS", "value": "300"}]}, "which the chart sets itself"),
        ({"autoscaling": {"enabled": True, "minReplicas": 10}}, "minReplicas is more than maxReplicas"),
        ({"config": {"kafka": {"listen": "0.0.0.0:1"}}}, "config.kafka.listen is worked out by the chart"),
        ({"config": {"kafka": {"entry_fromat": "pulsar"}}}, "entry_fromat"),
        ({"config": {"kafka": {"entry_format": "avro"}}}, "entry_format"),
        ({"config": {"limits": {"cache_bytes": "lots"}}}, "cache_bytes"),
        ({"sidecar": {"config": {"limits": {"cache_byte": 1}}}}, "cache_byte"),
        (
            {"brokerSidecar": {"enabled": True}},
            "install the other as a release of its own with config.kafka.node_id_base",
        ),
        ({"config": {"kafka": {"node_id": 1}}}, "config.kafka.node_id is worked out by the chart"),
        (
            {"config": {"groups": {"coordinate": False}}},
            "sidecar.config.groups.coordinate is for those beside applications",
        ),
        ({"config": {"kafak": {}}}, "kafak"),
        ({"config": {"kafka": {"namespace": ["a"]}}}, "/config/kafka/namespace"),
        ({"env": [{"name": "POD_IP", "value": "1"}]}, "env has POD_IP, which the chart sets itself"),
        ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "env has A, which"),
        ({"gatewy": {}}, "gatewy"),
        ({"pulsar": {"serviceUrl": "broker:6650"}}, "/pulsar/serviceUrl"),
        ({"gateway": {"replicas": "three"}}, "/gateway/replicas"),
        ({"image": {"digest": "abc"}}, "/image/digest"),
    ],
)
def test_wrong_values_are_told_in_a_sentence(values: Mapping[str, Any], told: str) -> None:
    with pytest.raises(HelmError, match=told):
        render(values)


@pytest.mark.parametrize("name", ["default", "spark", "brokers"])
def test_the_rendering_is_the_one_that_was_looked_at(name: str) -> None:
    """After a change that is meant: `make golden`, and look at the difference."""
    assert render(values_of(CHART / f"ci/{name}.yaml")).text == (GOLDEN / f"{name}.yaml").read_text()
