"""Logging: one line an event, text for people or JSON for machines, written from a thread of its own."""

from __future__ import annotations

import atexit
import json
import logging
import queue
import sys
import time
from logging.handlers import QueueHandler, QueueListener
from typing import Final

# Limit of log lines that wait for stderr. Later lines are dropped, so that a slow stderr neither blocks the event loop
# nor lets memory grow without bound.
MAX_QUEUED: Final = 10_000


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:
            line["exception"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


class _DroppingQueueHandler(QueueHandler):
    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            pass


def start(level: str, form: str) -> None:
    output = logging.StreamHandler(sys.stderr)
    if form == "json":
        output.setFormatter(_JsonFormatter())
    else:
        output.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    lines: queue.Queue[logging.LogRecord] = queue.Queue(MAX_QUEUED)
    listener = QueueListener(lines, output)
    listener.start()
    atexit.register(listener.stop)
    root = logging.getLogger()
    root.handlers[:] = [_DroppingQueueHandler(lines)]
    root.setLevel(level)
