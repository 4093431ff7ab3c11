"""Small programs in other languages, made from `integration/programs` with the clients that their registries have."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from integration.launcher.jars import CACHE, ROOT, Bundle, class_path

SOURCES: Final = ROOT / "integration" / "programs"
# What each needs to be there. None of it is part of the project's setup.
TOOLS: Final = {
    "kafkajs": ("node", "npm"),
    "sarama": ("go",),
    "franz": ("go",),
    "copy-sarama": ("go",),
    "copy-franz": ("go",),
}


def available(client: str) -> bool:
    return all(shutil.which(tool) for tool in TOOLS[client])


def skip_without(client: str) -> None:
    """In CI this is a failure, as every skip."""
    if not available(client):
        pytest.skip(f"{' and '.join(TOOLS[client])} must be installed for {client}")


def command(client: str) -> list[str]:
    """How to run a program of this kind; made on first use, by one of the test workers."""
    with _building(client) as built:
        return _made(client, built)


def java_program(name: str, bundle: Bundle, flags: Sequence[str], *more_jars: str) -> list[str]:
    """The same for a Java program, in a JVM with these flags: it is compiled once, not at each start."""
    jars = ":".join((class_path(bundle), *more_jars))
    with _building(f"java-{bundle.name}") as built:
        classes = built / "java" / bundle.name / name
        if not _is_new(SOURCES / "java" / f"{name}.java", classes / f"{name}.class"):
            _run(["javac", "-nowarn", "-cp", jars, "-d", str(classes), str(SOURCES / "java" / f"{name}.java")], SOURCES)
    return ["java", "-Xmx512m", *flags, "-cp", f"{jars}:{classes}", name]


@contextmanager
def _building(what: str) -> Iterator[Path]:
    built = CACHE / "programs"
    built.mkdir(parents=True, exist_ok=True)
    with (built / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield built


def _made(client: str, built: Path) -> list[str]:
    if client == "kafkajs":
        place = built / "kafkajs"
        if not _is_new(SOURCES / "kafkajs", place / "node_modules"):
            shutil.copytree(SOURCES / "kafkajs", place, dirs_exist_ok=True)
            _run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], place)
        return ["node", str(place / "member.js")]
    binary = built / "go" / client
    if not _is_new(SOURCES / "go", binary):
        _run(["go", "build", "-o", str(binary), f"./{client}"], SOURCES / "go")
    return [str(binary)]


def _is_new(sources: Path, made: Path) -> bool:
    files = [sources] if sources.is_file() else [path for path in sources.rglob("*") if path.is_file()]
    newest = max(path.stat().st_mtime for path in files)
    return made.exists() and made.stat().st_mtime >= newest


def _run(arguments: list[str], directory: Path) -> None:
    done = subprocess.run(arguments, cwd=directory, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


class ProgramMember:
    """One running member: what it says is heard in a thread; it leaves when its input ends."""

    def __init__(self, client: str, address: str, group: str, topic: str, isolation: str = "") -> None:
        """`isolation`: as Java names it, where it is not to be the client's default."""
        self.assigned: set[int] = set()
        self.read: list[tuple[int, int]] = []
        self.positions: dict[int, int] = {}  # where it reads next, of kafkajs
        self.failures: list[str] = []
        self._process = subprocess.Popen(
            [*command(client), address, group, topic, isolation],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said: dict[str, Any] = json.loads(line)
            if "assigned" in said:
                self.assigned = set(said["assigned"])
            elif "read" in said:
                self.read.append((said["read"][0], said["read"][1]))
            elif "position" in said:
                partition, offset = said["position"]
                self.positions[partition] = offset
            else:
                self.failures.append(line)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join(10)
