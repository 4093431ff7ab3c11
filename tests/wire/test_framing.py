"""Frames out of a stream, however it is cut."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.errors import FrameTooLarge
from kafka_sidecar.wire.framing import FrameBuffer


@given(st.lists(st.binary(max_size=50), max_size=8), st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_frames_are_the_same_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    buffer = FrameBuffer(100)
    found: list[bytes] = []
    at = 0
    for number in range(len(stream) + 1):
        step = cuts[number % len(cuts)]
        found += [bytes(frame) for frame in buffer.feed(stream[at : at + step])]
        at += step
    assert found == bodies


@pytest.mark.parametrize("size", [-1, 101, 2**31 - 1])
def test_a_length_out_of_bounds_is_refused_before_its_frame_arrives(size: int) -> None:
    with pytest.raises(FrameTooLarge):
        FrameBuffer(100).feed(struct.pack(">i", size))


def test_an_unfinished_frame_says_how_much_is_to_come() -> None:
    buffer = FrameBuffer(100)
    buffer.feed(struct.pack(">i", 50) + b"x")
    assert buffer.announced == 54
    buffer.feed(b"x" * 49)
    assert buffer.announced == 0


def test_a_frame_that_comes_in_drops_takes_little_more_than_its_bytes() -> None:
    buffer = FrameBuffer(1_000_000)
    buffer.feed(struct.pack(">i", 1_000_000))
    tracemalloc.start()
    try:
        for number in range(100_000):
            buffer.feed(bytes((number & 255, 1)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * 200_000


@pytest.mark.parametrize(
    ("begins", "says"),
    [
        (b"PRI * HTTP/2.0", "the peer speaks gRPC"),
        (b"GET / HTTP/1.1", "the peer speaks HTTP"),
        (b"\x16\x03\x01\x02\x00", "the peer speaks TLS"),
        (b"\x7f\x00\x00\x00", "a frame of 2130706432 bytes is over the limit of 100"),
    ],
)
def test_who_speaks_something_else_is_named(begins: bytes, says: str) -> None:
    """As `ctl` does at the port for Kafka clients, or a client that is set to use TLS."""
    with pytest.raises(FrameTooLarge, match=says):
        FrameBuffer(100).feed(begins)
