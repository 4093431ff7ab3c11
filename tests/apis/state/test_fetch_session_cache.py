"""KIP-227: what a session remembers."""

from __future__ import annotations

from kafka_sidecar.apis.state.fetch_session_cache import (
    EVICTION_SECONDS,
    MAX_ALL_PARTITIONS,
    MAX_SESSIONS,
    FetchSessionCache,
    rotate,
)
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic


def _request(session_id: int, epoch: int, partitions: dict[int, int], forgotten: tuple[int, ...] = ()) -> FetchRequest:
    wanted = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=100)
        for index, offset in partitions.items()
    ]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=wanted)] if wanted else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=forgotten)] if forgotten else [],
    )


def test_a_session_is_opened_goes_on_and_forgets() -> None:
    sessions = FetchSessionCache()
    opened = sessions.context(_request(0, 0, {0: 5, 1: 6}), 12, 0.0)
    assert opened.session_id > 0
    assert not opened.incremental
    changed = sessions.context(_request(opened.session_id, 1, {1: 7}, forgotten=(0,)), 12, 0.0)
    assert changed.incremental
    assert [(item.index, item.offset) for item in changed.partitions] == [(1, 7)]
    same = sessions.context(_request(opened.session_id, 2, {}), 12, 0.0)
    assert [(item.index, item.offset) for item in same.partitions] == [(1, 7)]


def test_an_unknown_session_and_a_wrong_epoch_are_told() -> None:
    sessions = FetchSessionCache()
    assert sessions.context(_request(99, 1, {}), 12, 0.0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    opened = sessions.context(_request(0, 0, {0: 0}), 12, 0.0)
    assert sessions.context(_request(opened.session_id, 5, {}), 12, 0.0).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_final_request_closes_its_session() -> None:
    sessions = FetchSessionCache()
    opened = sessions.context(_request(0, 0, {0: 0}), 12, 0.0)
    assert sessions.context(_request(opened.session_id, -1, {0: 0}), 12, 0.0).session_id == 0
    assert len(sessions) == 0


def test_partitions_that_were_served_go_to_the_end() -> None:
    sessions = FetchSessionCache()
    opened = sessions.context(_request(0, 0, {0: 0, 1: 0, 2: 0}), 12, 0.0)
    assert opened.session is not None
    rotate(opened.session, [opened.partitions[0]])
    again = sessions.context(_request(opened.session_id, 1, {}), 12, 0.0)
    assert [item.index for item in again.partitions] == [1, 2, 0]


def test_consumers_above_the_limit_have_no_session_and_take_nobody_elses() -> None:
    """With each new one in the place of the oldest, a thousand and one consumers would never find theirs."""
    sessions = FetchSessionCache()
    ids = [sessions.context(_request(0, 0, {0: 0}), 12, 0.0).session_id for _ in range(MAX_SESSIONS)]
    for moment in range(1, 200):
        without = sessions.context(_request(0, 0, {0: 0}), 12, float(moment))
        assert (without.session_id, without.error, len(without.partitions)) == (0, ErrorCode.NONE, 1)
        assert all(sessions.context(_request(one, moment, {}), 12, float(moment)).incremental for one in ids)
    assert len(sessions) == MAX_SESSIONS


def test_a_session_that_nobody_uses_makes_room() -> None:
    sessions = FetchSessionCache()
    ids = [sessions.context(_request(0, 0, {0: 0}), 12, 0.0).session_id for _ in range(MAX_SESSIONS)]
    for one in ids[1:]:
        sessions.context(_request(one, 1, {}), 12, EVICTION_SECONDS)
    assert sessions.context(_request(0, 0, {0: 0}), 12, EVICTION_SECONDS + 1).session_id
    assert (
        sessions.context(_request(ids[0], 1, {}), 12, EVICTION_SECONDS + 1).error
        is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_a_consumer_of_more_partitions_takes_the_place_of_the_smallest_once_that_is_old_enough() -> None:
    sessions = FetchSessionCache()
    several = [{index: 0 for index in range(2 + number % 7)} for number in range(MAX_SESSIONS)]
    ids = [sessions.context(_request(0, 0, partitions), 12, 0.0).session_id for partitions in several]
    larger = _request(0, 0, {index: 0 for index in range(9)})
    assert not sessions.context(larger, 12, 1.0).session_id, "the others are new"
    for one in ids:
        sessions.context(_request(one, 1, {}), 12, EVICTION_SECONDS)
    assert not sessions.context(_request(0, 0, {0: 0, 1: 0}), 12, EVICTION_SECONDS + 2).session_id, (
        "as large as the smallest is not larger"
    )
    assert sessions.context(larger, 12, EVICTION_SECONDS + 2).session_id
    assert (
        sessions.context(_request(ids[0], 2, {}), 12, EVICTION_SECONDS + 2).error
        is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_sessions_are_bounded_by_their_partitions_too() -> None:
    sessions = FetchSessionCache()
    many = {index: 0 for index in range(MAX_ALL_PARTITIONS // 4)}
    made = [sessions.context(_request(0, 0, many), 12, 0.0).session_id for _ in range(5)]
    assert [bool(session_id) for session_id in made] == [True, True, True, True, False]
    assert sessions.partitions == MAX_ALL_PARTITIONS
    sessions.context(_request(made[0], -1, {}), 12, 0.0)
    assert sessions.context(_request(0, 0, many), 12, 0.0).session_id
    assert not sessions.context(_request(0, 0, {index: 0 for index in range(60_000)}), 12, 0.0).session_id


def test_a_session_does_not_grow_past_what_all_may_have() -> None:
    sessions = FetchSessionCache()
    small = sessions.context(_request(0, 0, {0: 0}), 12, 0.0).session_id
    for _ in range(2):
        assert sessions.context(
            _request(0, 0, {index: 0 for index in range(MAX_ALL_PARTITIONS // 2 - 10)}), 12, 0.0
        ).session_id
    grown = sessions.context(_request(small, 1, {index: 0 for index in range(1, 15)}), 12, 0.0)
    assert not grown.error
    refused = sessions.context(_request(small, 2, {index: 0 for index in range(15, 40)}), 12, 0.0)
    assert refused.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.partitions == MAX_ALL_PARTITIONS - 20
