"""Services of `.proto` files, answered by objects with a method for each of theirs."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection
from typing import Any
from urllib.parse import unquote

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

import grpc
from kafka_sidecar.errors import SidecarError
from kafka_sidecar.telemetry import metrics

log = logging.getLogger(__name__)


class Aborted(SidecarError):
    """The answer is an error: one sentence for the caller."""

    code = grpc.StatusCode.UNAVAILABLE


class Misdirected(Aborted):
    code = grpc.StatusCode.FAILED_PRECONDITION


class NotLikeThat(Aborted):
    """What was asked for is not for something in this state."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Invalid(Aborted):
    code = grpc.StatusCode.INVALID_ARGUMENT


class Denied(Aborted):
    code = grpc.StatusCode.PERMISSION_DENIED


class NotThere(Aborted):
    code = grpc.StatusCode.NOT_FOUND


class Exhausted(Aborted):
    code = grpc.StatusCode.RESOURCE_EXHAUSTED


def answered_by(
    service: ServiceDescriptor, answers: object, from_this_host: Collection[str] = (), host: str = "127.0.0.1"
) -> Any:
    """What a gRPC server at `host` takes: `FindOffset` is answered by `find_offset`. Some methods may be called from
    this host alone.
    """
    methods = {
        method.name: grpc.unary_unary_rpc_method_handler(
            _answered(getattr(answers, snake_case(method.name)), host if method.name in from_this_host else None),
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )
        for method in service.methods
    }
    return grpc.method_handlers_generic_handler(service.full_name, methods)


def is_this_host(peer: str, host: str) -> bool:
    """Whether gRPC's name of a peer (`ipv4:127.0.0.1:4711`, `ipv6:%5B::1%5D:4711`) is one on this host, which listens
    at `host`.

    Not all of the loopback: a service mesh hands over what comes from elsewhere from addresses such as 127.0.0.6.
    """
    _, _, address = unquote(peer).partition(":")
    return address.rpartition(":")[0].strip("[]") in ("127.0.0.1", "::1", host)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _answered(method: Callable[[Any], Awaitable[Any]], only_from: str | None) -> Callable[[Any, Any], Awaitable[Any]]:
    async def answer(request: Any, context: Any) -> Any:
        try:
            if only_from is not None and not is_this_host(context.peer(), only_from):
                raise Denied(
                    "this is done from the sidecar's own host alone: run `kafka-sidecar ctl` there (in its pod or "
                    "container)"
                )
            return await method(request)
        except Aborted as error:
            await context.abort(error.code, str(error))
        except SidecarError as error:  # for example, Pulsar is unavailable
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        except Exception:
            metrics.INTERNAL_ERRORS.labels("control").inc()
            log.exception("a %s ended in an error of this sidecar", type(request).__name__)
            await context.abort(grpc.StatusCode.INTERNAL, "an error of the sidecar: its log has more")

    return answer
