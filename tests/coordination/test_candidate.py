"""What a sidecar says of itself to Pulsar is read as it was written, whatever else may stand there."""

from __future__ import annotations

import pytest

from kafka_sidecar.coordination.candidate import ADVERTISED, CONTROL, EXTERNAL, FORMAT, NODE, info_of, metadata_of
from kafka_sidecar.model.sidecar import SidecarInfo

INFO = SidecarInfo(
    "one", 7, "kafka.example:9092", "[::1]:9095", "a", "public/team", "outside.example:19092", "0.4.0", 3
)


def test_it_is_read_as_it_was_written() -> None:
    written = {key.decode(): value.decode() for key, value in metadata_of(INFO).items()}
    assert info_of("one", written) == INFO


def test_a_consumer_that_says_nothing() -> None:
    assert info_of("one", {}) == SidecarInfo("one", 0, "")


@pytest.mark.parametrize(
    "said", ["kafka.example", ":9092", "a:http", "a:" + "9" * 5_000, "²"], ids=lambda said: str(said)[:15]
)
def test_what_is_no_address_is_none(said: str) -> None:
    found = info_of("one", {ADVERTISED: said, CONTROL: said, EXTERNAL: said})
    assert (found.advertised, found.control, found.external) == ("", "", "")


@pytest.mark.parametrize("said", ["-1", "x", "²", "2147483648", "9" * 5_000], ids=lambda said: str(said)[:12])
def test_what_is_no_number_is_zero(said: str) -> None:
    found = info_of("one", {NODE: said, FORMAT: said})
    assert (found.node_id, found.stored_format) == (0, 0)
