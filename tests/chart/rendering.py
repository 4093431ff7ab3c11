"""Charts as Helm renders them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from helm_python import Chart
from helm_python.errors import HelmError

CHART = Path(__file__).parents[2] / "deploy/helm/pulsar-kafka"
GOLDEN = Path(__file__).parent / "golden"
# One file for each set-up that the chart is tested with.
SETUPS = sorted((CHART / "ci").glob("*.yaml"))

Document = Mapping[str, Any]


class Rendered:
    def __init__(self, files: Mapping[str, str]) -> None:
        self.notes = next((text for name, text in files.items() if name.endswith("NOTES.txt")), "")
        self.text = "\n".join(text for name, text in sorted(files.items()) if name.endswith(".yaml"))
        texts = [text for name, text in sorted(files.items()) if name.endswith(".yaml")]
        self.documents: list[Document] = [one for text in texts for one in yaml.safe_load_all(text) if one]

    def one(self, kind: str, name: str = "") -> Document:
        (found,) = (one for one in self.documents if one["kind"] == kind and one["metadata"]["name"].endswith(name))
        return found

    def all(self, kind: str) -> list[Document]:
        return [one for one in self.documents if one["kind"] == kind]

    def pod_specs(self) -> Iterator[tuple[str, Document]]:
        """Of all that makes pods, also within ConfigMaps."""
        for one in self.documents:
            if one["kind"] == "StatefulSet":
                yield "StatefulSet", one["spec"]["template"]["spec"]
            elif one["kind"] == "Pod":
                yield "Pod", one["spec"]
            elif one["kind"] == "ConfigMap":
                for name, text in one["data"].items():
                    if name in ("driver.yaml", "executor.yaml"):
                        yield name, yaml.safe_load(text)["spec"]
                    elif name == "values.yaml":
                        yield name, {"initContainers": yaml.safe_load(text)["broker"]["initContainers"]}

    def containers(self) -> Iterator[tuple[str, Document]]:
        for where, spec in self.pod_specs():
            for container in [*spec.get("initContainers", ()), *spec.get("containers", ())]:
                yield where, container

    def sidecar(self, where: str) -> Document:
        (found,) = (
            container
            for place, container in self.containers()
            if place == where and container["name"] == "kafka-sidecar"
        )
        return found


def values_of(setup: Path) -> dict[str, Any]:
    return yaml.safe_load(setup.read_text()) or {}


def render(values: Mapping[str, Any] | None = None) -> Rendered:
    with Chart.load(CHART) as chart:
        return Rendered(chart.render(values=dict(values or {}), name="kafka", namespace="streams"))


__all__ = ["CHART", "GOLDEN", "SETUPS", "Document", "HelmError", "Rendered", "render", "values_of"]
