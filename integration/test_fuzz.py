"""Any bytes at the socket: answered or closed, and the process serves on."""

from __future__ import annotations

import contextlib
import random
import socket
import struct

from integration.conftest import Cluster
from integration.kafka_clients import produce
from integration.support import resident_mib


def _throw(address: str, data: bytes, byte_by_byte: bool) -> None:
    host, port = address.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5) as client:
        client.settimeout(0.05)
        if byte_by_byte:
            for at in range(len(data)):
                client.sendall(data[at : at + 1])
        else:
            client.sendall(data)
        client.recv(4096)


def _garbage(rng: random.Random) -> bytes:
    body = rng.randbytes(rng.randrange(200))
    key, version = (
        rng.choice([0, 1, 2, 3, 18, 19, 20, 22, 23, 37, 60, 75, rng.randrange(-5, 100)]),
        rng.randrange(-1, 20),
    )
    match rng.randrange(5):
        case 0:
            return body
        case 1:  # a frame of noise
            return struct.pack(">i", len(body)) + body
        case 2:  # a length without a frame
            return struct.pack(">i", rng.choice([-1, 2**31 - 1, 0, 100_000_001, 90_000_000])) + body
        case 3:  # a header that promises something, and noise after it
            request = struct.pack(">hhih", key, version, 7, -1) + body
            return struct.pack(">i", len(request)) + request
        case _:  # the same with a flexible header and huge counts
            request = struct.pack(">hhih", key, version, 7, -1) + b"\0" + b"\xff\xff\xff\xff\x0f" * 5 + body
            return struct.pack(">i", len(request)) + request


def test_any_bytes_are_answered_or_closed(cluster: Cluster, topic: str) -> None:
    rng = random.Random(7)
    before = resident_mib(cluster.sidecar.pid)
    for number in range(300):
        _throw(cluster.kafka, _garbage(rng), byte_by_byte=number % 10 == 0)
    assert cluster.sidecar.running
    assert [ack.offset for ack in produce(cluster.kafka, topic, [b"still here"])] == [0]
    assert resident_mib(cluster.sidecar.pid) - before < 64


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(cluster: Cluster) -> None:
    host, port = cluster.kafka.split(":")
    request = struct.pack(">hhih", 18, 99, 42, -1)
    with socket.create_connection((host, int(port)), 5) as client:
        client.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", client.recv(4))
        answer = client.recv(size)
    assert struct.unpack(">ihi", answer[:10]) == (42, 35, 1)
    assert struct.unpack(">hhh", answer[10:16]) == (18, 0, 4)
