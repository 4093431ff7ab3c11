"""What a request for a group may be told instead of an answer."""

from __future__ import annotations

from kio.schema.errors import ErrorCode


class NotLeading(Exception):
    """This process does not coordinate the group, or not yet."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error
