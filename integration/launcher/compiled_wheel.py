"""The compiled wheel of this checkout, unpacked; it is made once for each state of the sources."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from integration.launcher.jars import CACHE, ROOT


def compiled_site() -> Path:
    """A directory for PYTHONPATH."""
    place = CACHE / "wheel"
    place.mkdir(parents=True, exist_ok=True)
    site = place / _digest()
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not site.exists():
            for older in place.iterdir():
                if older.is_dir():
                    shutil.rmtree(older)
            _make(site)
    return site


def _digest() -> str:
    files = [ROOT / "pyproject.toml", ROOT / "hatch_build.py", *sorted((ROOT / "handler/kafka_sidecar").rglob("*.py"))]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _make(site: Path) -> None:
    with tempfile.TemporaryDirectory(dir=site.parent) as name:
        made = Path(name)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)]
        environment = {**os.environ, "KAFKA_SIDECAR_COMPILED": "1"}
        built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if built.returncode:
            raise RuntimeError(f"the compiled wheel could not be made:\n{built.stdout}{built.stderr}")
        (wheel,) = made.glob("*.whl")
        if f"cp{sys.version_info.major}{sys.version_info.minor}" not in wheel.name:
            raise RuntimeError(f"{wheel.name} is not compiled for this Python")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(made / "site")
        (made / "site").rename(site)
