"""Between the sidecar and Pulsar's admin API: what it answers is decided by the test."""

from __future__ import annotations

import threading
import time
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import httpx

SLOW_SECONDS: Final = 2.0
# These concern a connection, and the answer travels on another one.
_OF_A_CONNECTION: Final = frozenset({"host", "connection", "content-length", "content-encoding", "transfer-encoding"})


class Mood(Enum):
    WELL = "well"
    SLOW = "slow"
    FAILING = "500 to everything"
    STRANGE = "404 to everything"  # a broker that has just started, or an ingress whose brokers are away


class AdminProxy:
    def __init__(self, admin_url: str) -> None:
        self.mood = Mood.WELL
        self._admin = httpx.Client(base_url=admin_url, timeout=60, trust_env=False)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_A_CONNECTION}
                answer = proxy.answer(self.command, self.path, headers, body)
                self.send_response(answer.status_code)
                for name, value in answer.headers.items():
                    if name.lower() not in _OF_A_CONNECTION:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_PUT = do_POST = do_DELETE = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        match self.mood:
            case Mood.FAILING:
                return httpx.Response(500, content=b'{"reason":"not now"}')
            case Mood.STRANGE:
                return httpx.Response(404, content=b"not found")
            case Mood.SLOW:
                time.sleep(SLOW_SECONDS)
        return self._admin.request(method, path, content=body, headers=headers)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._admin.close()
