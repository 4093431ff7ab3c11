"""The compiled wheel behaves as the source does: the same tests, and a crowd on a real Pulsar."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hatch_build import HOT
from integration.conftest import Cluster
from integration.kafka_clients import create, produce, read
from integration.launcher.compiled_wheel import compiled_site
from integration.launcher.jars import ROOT
from integration.launcher.sidecar import SidecarProcess
from integration.test_shared_entries import check_crowd, write_crowd

# Those that reach into modules to change a constant can't: the compiler has put its value where it is used.
TESTS = (
    "tests/partition/fold",
    "tests/partition/write",
    "tests/partition/test_partition.py",
    "tests/wire/test_records.py",
)


@pytest.fixture(scope="module")
def site() -> Path:
    return compiled_site()


def _run(site: Path, directory: Path, *command: str) -> str:
    # What this run of tests was asked for is not what the inner one is to do.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**inherited, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-P", *command], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout


def test_the_same_tests_pass(site: Path, tmp_path: Path) -> None:
    names = ", ".join(f"kafka_sidecar.{module.replace('/', '.')}" for module in HOT)
    files = _run(
        site,
        tmp_path,
        "-c",
        f"import sys, {names}; print(*[sys.modules[name].__file__ for name in '{names}'.split(', ')])",
    )
    assert all(file.endswith(".so") for file in files.split())
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert " passed" in _run(site, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)


def test_a_crowd_and_a_sidecar_that_is_killed(site: Path, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    sidecar = SidecarProcess(tmp_path, cluster.pulsar_url, cluster.admin_url, site=site)
    sidecar.start()
    try:
        create(sidecar.address, topic)
        acked = write_crowd(sidecar.address, topic)
        check_crowd(sidecar.address, topic, acked)
        sidecar.kill()
        sidecar.start()
        more = produce(sidecar.address, topic, [b"after"] * 100)
        assert [ack.offset for ack in more] == list(range(len(acked), len(acked) + 100))
        assert len(read(sidecar.address, topic, len(acked) + 100)) == len(acked) + 100
    finally:
        assert sidecar.stop() == 0
    assert not sidecar.complaints()
