"""The error that a request for a coordinator may get instead of an answer."""

from __future__ import annotations

from handler.wire.error_code import ErrorCode


class NotLeading(Exception):
    """This process does not lead the shard that the request is about, or not yet."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error
