"""UpdateFeatures (57), versions 0 to 2 (KIP-584). No feature has levels here, so none can be changed.

v1  how a feature is changed, and only whether it could be (KIP-778)
v2  one error for all (KIP-1022)
"""

from __future__ import annotations

from typing import Final

from handler.apis.api import Api, Call, Services
from handler.wire.error_code import ErrorCode
from handler.wire.messages.update_features import UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse

ONE_ERROR_SINCE: Final = 2


async def _handle(services: Services, call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    results = [
        UpdatableFeatureResult(
            feature=update.feature,
            error_code=ErrorCode.INVALID_UPDATE_VERSION,
            error_message=f"Invalid update version {update.max_version_level} for feature {update.feature}. "
            "The controller does not support the given feature.",
        )
        for update in request.feature_updates
    ]
    if call.version >= ONE_ERROR_SINCE and results:
        return UpdateFeaturesResponse(error_code=results[0].error_code, error_message=results[0].error_message)
    return UpdateFeaturesResponse(results=results)


API: Final = Api("UpdateFeatures", UpdateFeaturesRequest, UpdateFeaturesResponse, 0, 2, _handle)
