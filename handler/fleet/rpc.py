"""Services of `.proto` files, answered by objects with a method for each of theirs."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

import grpc
from handler.errors import SidecarError
from handler.telemetry import metrics

log = logging.getLogger(__name__)


class Aborted(SidecarError):
    """The answer is an error: one sentence for whoever asked."""

    code = grpc.StatusCode.UNAVAILABLE


class Misdirected(Aborted):
    code = grpc.StatusCode.FAILED_PRECONDITION


class Invalid(Aborted):
    code = grpc.StatusCode.INVALID_ARGUMENT


class NotThere(Aborted):
    code = grpc.StatusCode.NOT_FOUND


class Exhausted(Aborted):
    code = grpc.StatusCode.RESOURCE_EXHAUSTED


def answered_by(service: ServiceDescriptor, answers: object) -> Any:
    """What a gRPC server takes: `FindOffset` is answered by `find_offset`."""
    methods = {
        method.name: grpc.unary_unary_rpc_method_handler(
            _answered(getattr(answers, snake_case(method.name))),
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )
        for method in service.methods
    }
    return grpc.method_handlers_generic_handler(service.full_name, methods)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _answered(method: Callable[[Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    async def answer(request: Any, context: Any) -> Any:
        try:
            return await method(request)
        except Aborted as error:
            await context.abort(error.code, str(error))
        except SidecarError as error:  # Pulsar is away, say
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        except Exception:
            metrics.INTERNAL_ERRORS.labels("control").inc()
            log.exception("a %s ended in an error of this sidecar", type(request).__name__)
            await context.abort(grpc.StatusCode.INTERNAL, "an error of the sidecar: its log has more")

    return answer
