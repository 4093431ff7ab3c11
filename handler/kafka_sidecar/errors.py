"""Exceptions of the whole program, from the bottom up. Toward clients errors are codes, not exceptions."""

from __future__ import annotations


class SidecarError(Exception):
    """The root of what this program raises on purpose; `retriable` says whether trying again can help."""

    retriable = False


class ConfigError(SidecarError):
    """One sentence that says which setting to change."""


class CommandFailed(SidecarError):
    """One sentence for the one who typed the command: what went wrong, or what to change."""


class ProtocolError(SidecarError):
    """A peer sent bytes that the protocol does not allow; its connection is closed."""


class FrameTooLarge(ProtocolError):
    """Refused by its length, before memory was taken for it."""


class EntryUnreadable(SidecarError):
    """An entry whose bytes can't be given to a Kafka client. Never skipped, always reported."""
