"""Admin calls the tests make, what a process takes of memory, and a TCP proxy that breaks connections on command."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Final

import httpx


def admin(method: str, url: str, body: bytes | None = None) -> bytes:
    """One admin call; a redirect to another broker is followed with method and body."""
    response = httpx.request(
        method,
        url,
        content=body,
        headers={"content-type": "application/json"},
        timeout=30,
        follow_redirects=True,
        trust_env=False,
    )
    return response.raise_for_status().content


def unload(admin_url: str, topic: str, partition: int = 0) -> None:
    admin("PUT", f"{admin_url}/admin/v2/persistent/public/default/{topic}-partition-{partition}/unload")


def resident_mib(pid: int) -> float:
    """What a process takes of the machine's memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


_CHUNK: Final = 65536


class FaultProxy:
    """Between the sidecar and the broker: cuts, stalls, and cuts right after the next byte to the broker."""

    def __init__(self, target_port: int, port: int) -> None:
        self._target_port = target_port
        self._server = socket.create_server(("127.0.0.1", port))
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._flowing = threading.Event()
        self._flowing.set()
        self._cut_after_send = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return  # closed
            try:
                broker = socket.create_connection(("127.0.0.1", self._target_port))
            except OSError:
                client.close()  # the broker is down, and so is what stands before it
                continue
            pair = (client, broker)
            self._pairs.add(pair)
            threading.Thread(target=self._pump, args=(client, broker, pair, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(broker, client, pair, False), daemon=True).start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, pair: tuple[socket.socket, socket.socket], upward: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                self._flowing.wait()
                sink.sendall(data)
                if upward and len(data) > 500 and self._cut_after_send.is_set():
                    self._cut_after_send.clear()
                    break
        self._close(pair)

    def _close(self, pair: tuple[socket.socket, socket.socket]) -> None:
        self._pairs.discard(pair)
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self) -> None:
        for pair in list(self._pairs):
            self._close(pair)

    def cut_after_send(self) -> None:
        """The next large frame reaches the broker, its receipt does not come back."""
        self._cut_after_send.set()

    def stall(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        self._server.close()
        self.resume()
        self.cut()
