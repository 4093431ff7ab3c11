"""The names of partitions, in Pulsar's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.model.partition_name import partition_name, split_partition_name, topic_of


@given(st.text(), st.integers(0, 2**31 - 1))
def test_it_is_taken_apart_as_it_was_put_together(topic: str, index: int) -> None:
    name = partition_name(topic, index)
    assert split_partition_name(name) == (topic, index)
    assert topic_of(name) == topic


@pytest.mark.parametrize(
    "name", ["", "t", "t-partition-", "t-partition-x", "t-partition--1", "t-partition-²", "partition-1"]
)
def test_what_is_no_partition(name: str) -> None:
    assert split_partition_name(name) is None
