"""ApiVersions (18), versions 0 to 4.

v3  flexible (KIP-482); the client's name and version, which must be well-formed (KIP-511)
v4  features that begin at version 0 (KIP-1022)

Answered from the list of APIs, so it names nothing that is not served. An unknown version is answered
in version 0 with UNSUPPORTED_VERSION and the versions of this API (KIP-511): clients then ask again.

The level of transaction.version is 2 (KIP-890): Java's producers then add partitions and groups to transactions by what
they write, and every transaction has an epoch of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kafka_sidecar.apis.api import AnyApi, Api, Call, Services
from kafka_sidecar.apis.common.features import FEATURES
from kafka_sidecar.apis.needs import NOTHING
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.headers import API_VERSIONS
from kafka_sidecar.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE_SINCE: Final = 3
LEVEL_0_SINCE: Final = 4
# The features never change. Clients take a negative epoch to mean that there are none.
EPOCH: Final = 0
# ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN.
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_advertised: list[ApiVersion] = []


def advertise(apis: Sequence[AnyApi]) -> None:
    """Called once with the list of APIs, which has this one in it."""
    _advertised[:] = [
        ApiVersion(
            api_key=api.key,
            min_version=api.lowest if api.advertised_lowest is None else api.advertised_lowest,
            max_version=api.highest,
        )
        for api in apis
    ]


def handle(services: Services, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    software = (request.client_software_name, request.client_software_version)
    if call.version >= SOFTWARE_SINCE and not all(map(_SOFTWARE.fullmatch, software)):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    call.client.software = request.client_software_name
    return ApiVersionsResponse(
        api_keys=_advertised,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=feature.lowest, max_version=feature.highest)
            for name, feature in FEATURES.items()
            # Before version 4 a feature that begins at level 0 must be left out (KIP-1022).
            if feature.lowest > 0 or call.version >= LEVEL_0_SINCE
        ],
        finalized_features_epoch=EPOCH,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=feature.level, max_version_level=feature.level)
            for name, feature in FEATURES.items()
        ],
    )


def unsupported_version() -> ApiVersionsResponse:
    """For version 0, to a version that is not known here."""
    own = [one for one in _advertised if one.api_key == API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


API: Final = Api(ApiVersionsRequest, ApiVersionsResponse, 0, 4, handle, needs=NOTHING)
