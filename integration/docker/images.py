"""Images for tests in containers: the sidecar's, and a Pulsar of the same jars as in all other tests.

`python -m integration.docker.images` makes them and tries the sidecar's: its doctor, and a record that is written and
read back.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from integration.launcher.jars import class_path
from integration.launcher.process import JVM_OPENS
from integration.launcher.pulsar import LAPTOP_SETTINGS, LOG4J, bundle, version_from_environment, write_settings
from kafka_sidecar import __version__

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
BASE: Final = "kafka-sidecar-base:bookworm"
SIDECAR: Final = f"kafka-sidecar:{__version__}"
SPARK: Final = "kafka-sidecar-spark:tests"
# Testcontainers' own container that removes what others left; its image may be out of reach, and each test here removes
# what it made.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
# A container has an address of its own.
_OF_THE_HOST: Final = ("bindAddress", "advertisedAddress", "brokerShutdownTimeoutMs")


def pulsar_image() -> str:
    return f"kafka-sidecar-pulsar:{version_from_environment()}"


def docker(*arguments: str, seconds: float = 900) -> str:
    environment = {**os.environ, "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0")}
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=seconds, env=environment, check=False
    )
    if done.returncode:
        raise RuntimeError(
            f"docker {' '.join(arguments)} ended with "
            f"{done.returncode}:\n{done.stdout[-4_000:]}\n{done.stderr[-4_000:]}"
        )
    return done.stdout.strip()


def has_engine() -> bool:
    return (
        shutil.which("docker") is not None
        and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    )


def has(image: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0


def make_pulsar() -> str:
    """Made once for each version."""
    image = pulsar_image()
    if not has(image):
        with tempfile.TemporaryDirectory() as context_:
            context = Path(context_)
            shutil.copytree(HERE / "pulsar", context, dirs_exist_ok=True)
            (context / "lib").mkdir()
            for jar in class_path(bundle(version_from_environment())).split(":"):
                os.link(jar, context / "lib" / Path(jar).name) if _same_device(jar, context) else shutil.copy(
                    jar, context / "lib"
                )
            (context / "conf").mkdir()
            settings = {key: value for key, value in LAPTOP_SETTINGS.items() if key not in _OF_THE_HOST}
            write_settings(
                context / "conf/standalone.conf", {**settings, "brokerServicePort": "6650", "webServicePort": "8080"}
            )
            (context / "conf/log4j2.xml").write_text(LOG4J)
            (context / "conf/opens").write_text(" ".join(JVM_OPENS))
            docker("build", "--network=host", "--build-arg", f"BASE={BASE}", "-t", image, "-q", str(context))
    return image


def _same_device(jar: str, context: Path) -> bool:
    return os.stat(jar).st_dev == context.stat().st_dev


def make_sidecar() -> str:
    """Made each time: layers that have not changed are there already."""
    subprocess.run([str(ROOT / "deploy/image/make.sh")], check=True, env={**os.environ, "IMAGE": SIDECAR})
    return SIDECAR


def make_spark() -> str:
    """Of Pulsar's, since that has Java."""
    docker("build", "-q", "-t", SPARK, "--build-arg", f"BASE={make_pulsar()}", str(HERE / "spark"))
    return SPARK


def main() -> None:
    make_sidecar()
    os.environ.setdefault("PULSAR_IMAGE", make_pulsar())
    from kafka_sidecar.testing import PulsarKafkaContainer

    begun = time.monotonic()
    with PulsarKafkaContainer() as kafka:
        print(f"Pulsar and the sidecar serve {time.monotonic() - begun:.0f} s later")
        print(kafka.run("doctor"))
        print(kafka.run("try", "--bootstrap-server", kafka.get_internal_bootstrap_server()))


if __name__ == "__main__":
    main()
