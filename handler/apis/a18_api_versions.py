"""ApiVersions (18), versions 0 to 4.

Answered from the list of APIs, so nothing is told that is not served. An unknown version is answered
in version 0 with UNSUPPORTED_VERSION and the versions of this API (KIP-511): clients then ask again.

v3  KIP-511: client name and version, which must be well-formed. v4: KIP-1043's feature fix.
Not implemented: features; none is finalized.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services

KEY: Final = 18
# ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN.
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_advertised: list[dict[str, Any]] = []


def advertise(apis: tuple[Api, ...]) -> None:
    """Called once with the list of APIs, which has this one in it."""
    _advertised[:] = [
        {
            "api_key": api.key,
            "min_version": api.lowest if api.advertised_lowest is None else api.advertised_lowest,
            "max_version": api.highest,
        }
        for api in apis
    ]


def handle(services: Services, call: Call) -> Answer:
    name = getattr(call.request, "client_software_name", None)
    version = getattr(call.request, "client_software_version", None)
    if name is not None and not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version or "")):
        return {"error_code": ErrorCode.invalid_request, "api_keys": ()}
    return {"error_code": ErrorCode.none, "api_keys": _advertised}


def unsupported_version() -> Answer:
    """For version 0, to a version that is not known here."""
    own = [item for item in _advertised if item["api_key"] == KEY]
    return {"error_code": ErrorCode.unsupported_version, "api_keys": own}


API: Final = Api(KEY, "ApiVersions", 0, 4, handle)
