"""A connection's client, its transport and its requests, each moved by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kafka_sidecar.apis.state.answer_share import AnswerShare, CountedFetchResponse
from kafka_sidecar.apis.state.promise import Promise
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.loop.awake import Awake
from kafka_sidecar.server.budget import ByteBudget
from kafka_sidecar.server.connection import KafkaConnection


class FakeTransport:
    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.end_turn: Callable[[], None] = lambda: None
        self.reading = True
        self.closed = False
        self.ended = False
        self.aborted = False

    @property
    def sent(self) -> list[bytes]:
        """What has left by the end of this turn of the loop."""
        self.end_turn()
        return self.taken

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("127.0.0.1", 1)

    def writelines(self, parts: list[bytes]) -> None:
        self.taken += map(bytes, parts)

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


@dataclass
class Work:
    """A request in work, as dispatch hands it over."""

    answer: Any
    api: str = "Test"
    ends_with_client: bool = True

    def encode(self, answer: bytes | CountedFetchResponse) -> tuple[bytes]:
        if answer == b"broken":
            raise ValueError("can't be encoded")
        return (answer if isinstance(answer, bytes) else b"x" * answer.counted_bytes,)

    def took(self, seconds: float) -> None:
        assert seconds >= 0


@dataclass
class Client:
    """A connection whose requests are answered by hand: `works[n]` is the n-th request's promise."""

    answers: Mapping[bytes, Any] = field(default_factory=dict)
    budget: ByteBudget = field(default_factory=lambda: ByteBudget(10_000))
    max_request: int = 1_000
    works: list[Promise[Any]] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)
    lost: int = 0
    answers_share: AnswerShare = field(default_factory=lambda: AnswerShare(10_000))
    clock: float = 0.0
    changes: bool = False  # its requests change something
    is_drained_first: bool = False

    def __post_init__(self) -> None:
        self.transport = FakeTransport()
        self.awake = Awake(lambda: True, lambda: self.clock)
        self.stood_still = 0
        self.connection = KafkaConnection(
            cast(Any, None),
            self._dispatch,
            self.budget,
            self.answers_share,
            self.max_request,
            self._on_lost,
            self.awake,
            self._on_stood_still,
        )
        if self.is_drained_first:
            self.connection.drain()
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]
        assert self.connection._writer is not None
        self.transport.end_turn = self.connection._writer.flush

    def _on_stood_still(self) -> None:
        self.stood_still += 1

    def _on_lost(self, _: KafkaConnection) -> None:
        self.lost += 1

    def _dispatch(self, _: KafkaConnection, frame: memoryview) -> Work:
        body = bytes(frame)
        self.seen.append(body)
        if body == b"garbage":
            raise ProtocolError("garbage")
        if body == b"bug":
            raise RuntimeError("a bug")
        if body in self.answers:
            return Work(self.answers[body], ends_with_client=not self.changes)
        promise: Promise[Any] = Promise()
        self.works.append(promise)
        return Work(promise, ends_with_client=not self.changes)

    def send(self, *bodies: bytes) -> None:
        self.connection.data_received(b"".join(struct.pack(">i", len(body)) + body for body in bodies))

    def resolve(self, number: int, data: bytes) -> None:
        self.works[number].resolve(data)
