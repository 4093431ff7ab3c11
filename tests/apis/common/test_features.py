"""The features of the cluster: told by ApiVersions, changed by nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.api_versions import ApiVersionsRequest
from kafka_sidecar.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.services import Sidecar

ALL = [("metadata.version", 7, 29), ("group.version", 0, 1), ("transaction.version", 0, 2)]


@pytest_asyncio.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    one = Sidecar()
    yield one
    await one.close()


@pytest.mark.parametrize(("version", "supported"), [(3, ALL[:1]), (4, ALL)])
async def test_those_that_begin_at_level_0_are_told_from_version_4_on(
    sidecar: Sidecar, version: int, supported: list[tuple[str, int, int]]
) -> None:
    answer = await sidecar.ask(ApiVersionsRequest(client_software_name="kcat", client_software_version="1"), version)
    assert [(one.name, one.min_version, one.max_version) for one in answer.supported_features] == supported


async def test_each_is_finalized_at_one_level_which_is_its_highest(sidecar: Sidecar) -> None:
    answer = await sidecar.ask(ApiVersionsRequest(client_software_name="kcat", client_software_version="1"), 4)
    finalized = [(one.name, one.min_version_level, one.max_version_level) for one in answer.finalized_features]
    assert finalized == [(name, highest, highest) for name, _, highest in ALL]
    assert answer.finalized_features_epoch == 0, "a negative one means that there are none"


async def test_versions_before_3_tell_no_features(sidecar: Sidecar) -> None:
    (await sidecar.ask(ApiVersionsRequest(), 2)).write(2, bytearray())


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(("feature", "level"), [("metadata.version", 20), ("transaction.version", 1), ("of.nobody", 1)])
async def test_any_other_level_is_refused_for_the_whole_request(
    sidecar: Sidecar, version: int, feature: str, level: int
) -> None:
    updates = [
        FeatureUpdateKey(feature="group.version", max_version_level=1),
        FeatureUpdateKey(feature=feature, max_version_level=level),
    ]
    answer = await sidecar.ask(UpdateFeaturesRequest(feature_updates=updates), version)
    assert answer.error_code is ErrorCode.INVALID_UPDATE_VERSION
    assert f"Invalid update version {level} for feature {feature}." in answer.error_message
    assert not answer.results


@pytest.mark.parametrize("upgrade_type", [0, 9])
async def test_a_way_to_upgrade_that_there_is_not_is_refused(sidecar: Sidecar, upgrade_type: int) -> None:
    update = FeatureUpdateKey(feature="metadata.version", max_version_level=29, upgrade_type=upgrade_type)
    answer = await sidecar.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert answer.error_code is ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message.endswith("does not support the given upgrade type.")


@pytest.mark.parametrize(("version", "results"), [(0, 1), (1, 1), (2, 0)])
async def test_the_level_that_holds_is_accepted(sidecar: Sidecar, version: int, results: int) -> None:
    updates = [FeatureUpdateKey(feature="metadata.version", max_version_level=29)]
    answer = await sidecar.ask(UpdateFeaturesRequest(feature_updates=updates), version)
    assert answer.error_code is ErrorCode.NONE
    assert [one.error_code for one in answer.results] == [ErrorCode.NONE] * results
