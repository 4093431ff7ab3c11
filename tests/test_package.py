"""What is installed with the package, and under which names."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What programs of users import.
PUBLIC = (
    "kafka_sidecar.testing",
    "kafka_sidecar.testing.fixtures",
    "kafka_sidecar.control.client",
    "kafka_sidecar.pipelines.progress",
)


def test_the_wheel_holds_one_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"kafka_sidecar"}
    assert "kafka_sidecar/py.typed" in names


def test_the_folder_around_it_is_no_package() -> None:
    """mypy and mypyc would name its modules handler.kafka_sidecar."""
    assert not (ROOT / "handler/__init__.py").exists()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_stay(name: str) -> None:
    assert importlib.import_module(name).__doc__
