"""What is answered on the control port, and to whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import grpc
from kafka_sidecar.control.v1 import admin_pb2 as pb
from kafka_sidecar.fleet.rpc import answered_by, is_this_host

ADMIN = pb.DESCRIPTOR.services_by_name["Admin"]


@pytest.mark.parametrize(
    ("peer", "is_here"),
    [
        ("ipv4:127.0.0.1:4711", True),
        ("ipv6:%5B::1%5D:4711", True),
        ("ipv6:[::1]:4711", True),
        ("ipv4:10.0.0.5:4711", True),
        ("ipv4:10.1.2.3:4711", False),
        ("ipv4:127.0.0.6:4711", False),
        ("ipv6:%5Bfe80::1%25eth0%5D:4711", False),
        ("", False),
    ],
)
def test_who_is_on_this_host(peer: str, is_here: bool) -> None:
    assert is_this_host(peer, "10.0.0.5") is is_here


class Admin:
    """Answers everything."""

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        async def answer(request: Any) -> str:
            return name

        return answer


class Context:
    def __init__(self, peer: str) -> None:
        self._peer = peer

    def peer(self) -> str:
        return self._peer

    async def abort(self, code: Any, why: str) -> None:
        raise PermissionError(code, why)


class Called:
    def __init__(self, method: str) -> None:
        self.method = f"/{ADMIN.full_name}/{method}"


async def call(method: str, peer: str) -> Any:
    service = answered_by(ADMIN, Admin(), {"Drain"})
    return await service.service(Called(method)).unary_unary(None, Context(peer))


async def test_others_may_look_and_only_who_is_here_may_change_something() -> None:
    assert await call("ListGroups", "ipv4:10.1.2.3:4711") == "list_groups"
    assert await call("Drain", "ipv4:127.0.0.1:4711") == "drain"
    with pytest.raises(PermissionError) as refused:
        await call("Drain", "ipv4:10.1.2.3:4711")
    assert refused.value.args[0] is grpc.StatusCode.PERMISSION_DENIED
    assert "in its pod" in refused.value.args[1]
