"""A JVM that runs Kafka's command line classes one after the other, and is kept for all tests of this process."""

from __future__ import annotations

import atexit
import struct
import subprocess
import threading
from collections.abc import Sequence
from typing import Final

_INT: Final = struct.Struct(">i")


class ToolHost:
    def __init__(self, command: Sequence[str]) -> None:
        """`command` starts `ToolHost.java`."""
        self._command = command
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def run(self, arguments: Sequence[str], stdin: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run`. A command that takes too long takes the JVM with it."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=-1
                )
            process = self._process
            took_too_long = threading.Event()

            def end() -> None:
                took_too_long.set()
                process.kill()

            timer = threading.Timer(seconds, end)
            timer.start()
            try:
                return self._exchange(process, arguments, stdin)
            except BaseException as error:
                process.kill()  # else what it still says would be taken for the answer to the next command
                process.wait()
                if took_too_long.is_set():
                    raise subprocess.TimeoutExpired(list(arguments), seconds) from error
                raise
            finally:
                timer.cancel()

    def _exchange(
        self, process: subprocess.Popen[bytes], arguments: Sequence[str], stdin: str
    ) -> subprocess.CompletedProcess[str]:
        assert process.stdin is not None
        words = [word.encode() for word in (*arguments, stdin)]
        process.stdin.write(_INT.pack(len(arguments)) + b"".join(_INT.pack(len(word)) + word for word in words))
        process.stdin.flush()
        status = self._int(process)
        out, err = (self._read(process, self._int(process)).decode(errors="replace") for _ in range(2))
        return subprocess.CompletedProcess(list(arguments), status, out, err)

    def _int(self, process: subprocess.Popen[bytes]) -> int:
        return int(_INT.unpack(self._read(process, _INT.size))[0])

    def _read(self, process: subprocess.Popen[bytes], count: int) -> bytes:
        assert process.stdout is not None
        found = process.stdout.read(count)
        if len(found) < count:
            raise EOFError(f"the JVM of {self._command[-1]} has ended")
        return found

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
