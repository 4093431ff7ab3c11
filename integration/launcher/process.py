"""A server process: started in a session of its own, logged to a file, ended for certain."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, ClassVar, Final

# Java reflects into these packages from BookKeeper, RocksDB and Netty (Pulsar's bin/pulsar opens the same).
JVM_OPENS: Final = tuple(
    f"--add-opens={package}=ALL-UNNAMED"
    for package in (
        "java.base/java.io",
        "java.base/java.util.zip",
        "java.base/java.nio",
        "java.base/java.lang",
        "java.base/java.util",
        "java.base/sun.net",
        "java.base/sun.nio.ch",
        "java.base/jdk.internal.misc",
        "java.base/jdk.internal.platform",
        "java.management/sun.management",
        "jdk.management/com.sun.management.internal",
    )
)


# Below those that a system gives to outgoing connections (from 32768 on): a server that is down for a moment finds its
# own again.
_PORTS: Final = range(12_000, 32_000)
_WINDOW: Final = 1_000
_given = itertools.count()


def free_port() -> int:
    """One that this process has given to nobody before, and that no other run of tests takes."""
    return free_ports(1)[0]


def free_ports(count: int) -> range:
    """The same for `count` in a row."""
    window = _claimed_window()
    for _ in window:
        at = next(_given) % _WINDOW
        for _ in range(count - 1):
            next(_given)
        found = range(window.start + at, window.start + at + count)
        if found.stop <= window.stop and not any(map(port_is_taken, found)):
            return found
    raise OSError("no port is free")


@functools.cache
def _claimed_window() -> range:
    """Ports for this process alone: as long as it lives it holds the lock of a file that stands for them."""
    for start in range(_PORTS.start, _PORTS.stop, _WINDOW):
        with contextlib.suppress(OSError):  # it is another's
            file = (Path(tempfile.gettempdir()) / f"kafka-sidecar-tests-{start}.lock").open("w")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _claims.append(file)
            return range(start, start + _WINDOW)
    raise OSError(f"other runs of tests have all ports from {_PORTS.start} to {_PORTS.stop - 1}: end one of them")


_claims: Final[list[IO[str]]] = []


def port_is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


# A broker needs 12 s of processor time to start. One did not get them within 90 s while a fleet under load kept both
# cores busy.
STARTS_WITHIN: Final = 300.0


STANDS_WITHIN: Final = 2.0


class ServerFailed(Exception):
    """A server that did not come up; the text ends with the last lines of its log."""


class Server:
    """One child process. `stop` is polite first, `kill` is not; both wait for the end."""

    started: ClassVar[list[Server]] = []  # by this process, in order

    def __init__(self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.started.append(self)
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            # A session of its own: Ctrl-C at a terminal reaches the launcher alone, which then stops its servers in
            # order.
            self._process = subprocess.Popen(
                command,
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], seconds: float = STARTS_WITHIN) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise ServerFailed(f"{self.name} ended with code {self._process.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} was not ready after {seconds:.0f} s:\n{self.log_tail()}")
            time.sleep(0.1)

    def log_tail(self, lines: int = 25) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def stop(self, seconds: float = 60) -> int:
        self.signal(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """Between two system calls.

        SIGKILL cuts a write short. A bookie takes for an entry what its journal has of it by then, and that ledger
        never opens again.
        """
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + STANDS_WITHIN
        while self.running and not _stands_still(self.pid) and time.monotonic() < deadline:
            time.sleep(0.001)
        self.signal(signal.SIGKILL)
        return self._process.wait(30)


def _stands_still(pid: int) -> bool:
    """All threads of a process."""
    with contextlib.suppress(OSError):  # a thread, or the process, has ended meanwhile
        return all(
            stat.read_text().rpartition(")")[2].split()[0] in "TZX" for stat in Path(f"/proc/{pid}/task").glob("*/stat")
        )
    return False


class Restartable:
    """What every kind of server here has in common: it can be stopped, killed, and started again."""

    _server: Server | None = None

    @property
    def pid(self) -> int:
        assert self._server is not None
        return self._server.pid

    @property
    def running(self) -> bool:
        return self._server is not None and self._server.running

    def stop(self, seconds: float = 60) -> int:
        return 0 if self._server is None else self._server.stop(seconds)

    def kill(self) -> None:
        if self._server is not None:
            self._server.kill()

    def signal(self, number: int) -> None:
        assert self._server is not None
        self._server.signal(number)

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """As a process that gets no processor: its sockets take what is sent to them, and it does not know."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)
