"""KIP-227: what a session remembers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kio.schema.errors import ErrorCode

from handler.apis.fetch_sessions import MAX_SESSIONS, FetchSessions, rotate


def _request(session_id: int, epoch: int, partitions: dict[int, int], forgotten: tuple[int, ...] = ()) -> Any:
    wanted = [SimpleNamespace(partition=index, fetch_offset=offset, partition_max_bytes=100) for index, offset in partitions.items()]
    return SimpleNamespace(
        session_id=session_id,
        session_epoch=epoch,
        topics=[SimpleNamespace(topic="t", partitions=wanted)] if wanted else [],
        forgotten_topics_data=[SimpleNamespace(topic="t", partitions=forgotten)] if forgotten else [],
    )


def test_a_session_is_opened_goes_on_and_forgets() -> None:
    sessions = FetchSessions()
    opened = sessions.plan(_request(0, 0, {0: 5, 1: 6}))
    assert opened.session_id > 0
    assert not opened.incremental
    changed = sessions.plan(_request(opened.session_id, 1, {1: 7}, forgotten=(0,)))
    assert changed.incremental
    assert [(item.index, item.offset) for item in changed.partitions] == [(1, 7)]
    same = sessions.plan(_request(opened.session_id, 2, {}))
    assert [(item.index, item.offset) for item in same.partitions] == [(1, 7)]


def test_an_unknown_session_and_a_wrong_epoch_are_told() -> None:
    sessions = FetchSessions()
    assert sessions.plan(_request(99, 1, {})).error is ErrorCode.fetch_session_id_not_found
    opened = sessions.plan(_request(0, 0, {0: 0}))
    assert sessions.plan(_request(opened.session_id, 5, {})).error is ErrorCode.invalid_fetch_session_epoch


def test_a_final_request_closes_its_session() -> None:
    sessions = FetchSessions()
    opened = sessions.plan(_request(0, 0, {0: 0}))
    assert sessions.plan(_request(opened.session_id, -1, {0: 0})).session_id == 0
    assert len(sessions) == 0


def test_partitions_that_were_served_go_to_the_end() -> None:
    sessions = FetchSessions()
    opened = sessions.plan(_request(0, 0, {0: 0, 1: 0, 2: 0}))
    assert opened.session is not None
    rotate(opened.session, [opened.partitions[0]])
    again = sessions.plan(_request(opened.session_id, 1, {}))
    assert [item.index for item in again.partitions] == [1, 2, 0]


def test_sessions_are_bounded() -> None:
    sessions = FetchSessions()
    for _ in range(MAX_SESSIONS + 10):
        sessions.plan(_request(0, 0, {0: 0}))
    assert len(sessions) == MAX_SESSIONS
