"""The error that a request for a coordinator may get instead of an answer."""

from __future__ import annotations

from kafka_sidecar.wire.error_code import ErrorCode


class CoordinatorError(Exception):
    """The request can't be served here, or not yet; `error` is what its client gets."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error
