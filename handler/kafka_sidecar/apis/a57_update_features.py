"""UpdateFeatures (57), versions 0 to 2 (KIP-584): the level of each feature is fixed.

v1  how a feature is changed, and only whether it could be (KIP-778)
v2  one error for all (KIP-1022)

A feature that is set to the level that it has is NONE, as with Kafka. Any other is INVALID_UPDATE_VERSION for the whole
request, in the field of the response itself: Kafka's controller does that in all versions
(QuorumController.updateFeatures), and sarama looks nowhere else.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.features import FEATURES
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE_TYPE_SINCE: Final = 1
ONE_ERROR_SINCE: Final = 2
# FeatureUpdate.UpgradeType: upgrade, safe and unsafe downgrade
UPGRADE_TYPES: Final = (1, 2, 3)


def _refusal(update: FeatureUpdateKey, version: int) -> str | None:
    feature = FEATURES.get(update.feature)
    invalid = f"Invalid update version {update.max_version_level} for feature {update.feature}."
    if feature is None:
        return f"{invalid} This cluster does not support this feature."
    if version >= UPGRADE_TYPE_SINCE and update.upgrade_type not in UPGRADE_TYPES:
        return f"{invalid} The controller does not support the given upgrade type."
    if update.max_version_level != feature.level:
        return f"{invalid} Its level is {feature.level}, and comes with the release of the sidecar."
    return None


async def _handle(services: Services, call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    refusals = [
        refusal for refusal in (_refusal(one, call.version) for one in request.feature_updates) if refusal is not None
    ]
    if refusals:
        message = f"The update failed for all features since the following feature had an error: {refusals[0]}"
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=message)
    if call.version >= ONE_ERROR_SINCE:
        return UpdateFeaturesResponse()
    return UpdateFeaturesResponse(
        results=[UpdatableFeatureResult(feature=update.feature) for update in request.feature_updates]
    )


API: Final = Api(UpdateFeaturesRequest, UpdateFeaturesResponse, 0, 2, _handle, needs=on_cluster(AclOperation.ALTER))
