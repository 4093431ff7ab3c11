"""Fetch (1), versions 4 to 18.

Answered at once when there is enough, else when there is or when max_wait is over. The first
partition with data gives at least one batch, however large (KIP-74); a fetch within a batch gets
the whole batch. Leader epoch is always 0. An offset outside the log is OFFSET_OUT_OF_RANGE; beyond the end that is
known here it waits until the end is confirmed. While clients do not take their answers no records are given.

v5 log start · v7 sessions (KIP-227) · v9 leader epoch (KIP-320) · v12 flexible · v13 topic ids (KIP-516)
v15 replica state, ignored: nobody replicates from here
Not implemented: transactions (every record is committed), follower fetching, rack ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services, SizedAnswer
from handler.apis.fetch_sessions import FetchedPartition, FetchPlan, rotate
from handler.partition.cache import Run
from handler.partition.partition import Partition
from handler.pulsar.errors import TopicMissing
from handler.telemetry import metrics
from handler.topics.names import InvalidTopicName, TopicName

READ_COMMITTED: Final = 1
# Old data may take longer to arrive than a consumer's max_wait (500 ms); Kafka too answers a read
# from disk when it is done and not before. Well below a client's request timeout of 30 s.
CATCH_UP_SECONDS: Final = 10.0
# For so long data of other partitions waits for the end of one that is read beyond it: else each fetch of a
# consumer would be answered before it can be told that its offset is out of range.
HOLD_BACK_SECONDS: Final = 0.5


class _Fetch:
    """One request until it is answered."""

    __slots__ = (
        "_awaits_an_end",
        "_call",
        "_deadline",
        "_places",
        "_plan",
        "_result",
        "_services",
        "_timer",
        "_waiting_since",
        "_watchers",
    )

    def __init__(self, services: Services, call: Call, plan: FetchPlan) -> None:
        self._services = services
        self._call = call
        self._plan = plan
        self._places = [self._place(wanted) for wanted in plan.partitions]
        self._result: asyncio.Future[Answer | None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watchers: list[Callable[[], None]] = []
        self._waiting_since = services.clock()
        self._awaits_an_end = False  # a partition is read beyond the end that is known here
        self._deadline = self._waiting_since + max(0.0, call.request.max_wait.total_seconds())

    def _place(self, wanted: FetchedPartition) -> Partition | ErrorCode:
        catalog = self._services.catalog
        name: TopicName | None
        if isinstance(wanted.topic, str):
            try:
                name = catalog.names.parse(wanted.topic)
            except InvalidTopicName:
                return ErrorCode.invalid_topic_exception
        else:
            name = catalog.name_of(wanted.topic)
            if name is None:
                return ErrorCode.unknown_topic_id
        if wanted.leader_epoch > 0:
            return ErrorCode.unknown_leader_epoch
        try:
            return self._services.partition(name, wanted.index)
        except TopicMissing:
            return ErrorCode.unknown_topic_or_partition

    def begin(self) -> Result:
        answer = self._try()
        if answer is not None:
            return answer
        loop = asyncio.get_running_loop()
        self._result = loop.create_future()
        self._result.add_done_callback(lambda _: self._stop())
        self._watchers = [partial(self._changed, number) for number in range(len(self._places))]
        for place, changed in zip(self._places, self._watchers, strict=True):
            if isinstance(place, Partition):
                place.watch(changed)
        self._timer = loop.call_at(self._deadline, self._time_is_up)
        return self._result

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._services.answers.withdraw(self._there_is_room)
        for place, changed in zip(self._places, self._watchers, strict=True):
            if isinstance(place, Partition):
                place.unwatch(changed)

    def _there_is_room(self) -> None:
        if self._result is not None and not self._result.done():
            answer = self._try()
            if answer is not None:
                self._result.set_result(answer)

    def _changed(self, number: int) -> None:
        """One partition has news. The others are looked at only when it has something to answer with."""
        place = self._places[number]
        if self._result is None or self._result.done() or not isinstance(place, Partition):
            return
        run = self._read_one(self._plan.partitions[number], place, self._limit, first=True)
        if run is not None and (run.size or run.error is not ErrorCode.none or self._awaits_an_end):
            answer = self._try()
            if answer is not None:
                self._result.set_result(answer)
                return
        place.watch(self._watchers[number])

    def _time_is_up(self) -> None:
        if self._result is None or self._result.done():
            return
        runs, underway = self._read()
        has_data = any(run is not None and run.size for run in runs)
        patience = (HOLD_BACK_SECONDS if self._awaits_an_end else 0) if has_data else CATCH_UP_SECONDS
        if underway and self._services.clock() - self._waiting_since <= patience:
            self._timer = asyncio.get_running_loop().call_later(0.25, self._time_is_up)
            return
        self._result.set_result(self._answer(runs))

    def _try(self) -> Answer | None:
        """The answer if there is enough for one by now."""
        if not self._services.answers.room and self._services.clock() < self._deadline:
            self._services.answers.wait(self._there_is_room)
            return None
        runs, underway = self._read()
        size = sum(run.size for run in runs if run is not None)
        failed = any(run is not None and run.error is not ErrorCode.none for run in runs)
        if self._awaits_an_end and not failed:
            return None
        # Old data and an end that has to be confirmed may take longer than a consumer wants to wait.
        impatient = self._deadline <= self._waiting_since and not underway
        if failed or size >= self._call.request.min_bytes or impatient or not runs:
            return self._answer(runs)
        return None

    @property
    def _limit(self) -> int:
        asked = getattr(self._call.request, "max_bytes", 2**31 - 1)
        return min(asked, self._services.config.fetch_max_bytes, self._services.answers.room)

    def _read(self) -> tuple[list[Run | None], bool]:
        """What every partition has; and whether something is on its way."""
        limit = self._limit
        may_give = limit > 0  # one batch is given however large it is, if there is room for anything
        size = 0
        underway = False
        awaits_an_end = False
        runs: list[Run | None] = []
        for wanted, place in zip(self._plan.partitions, self._places, strict=True):
            run = self._read_one(wanted, place, limit - size, first=may_give and size == 0)
            if run is None:
                underway = True
                awaits_an_end = awaits_an_end or (isinstance(place, Partition) and place.is_open and place.is_beyond_the_end(wanted.offset))
            size += 0 if run is None else run.size
            runs.append(run)
        self._awaits_an_end = awaits_an_end
        return runs, underway

    def _read_one(self, wanted: FetchedPartition, place: Partition | ErrorCode, left: int, first: bool) -> Run | None:
        if isinstance(place, ErrorCode):
            return Run([], 0, wanted.offset, place)
        if place.ended is not None:
            return Run([], 0, wanted.offset, place.ended)
        if not place.is_open:
            return None
        return place.read(wanted.offset, min(wanted.max_bytes, max(left, 0)), at_least_one=first, since=self._waiting_since)

    # --- the answer

    def _answer(self, runs: list[Run | None]) -> Answer:
        topics: dict[Any, list[dict[str, Any]]] = {}
        served = []
        for wanted, place, run in zip(self._plan.partitions, self._places, runs, strict=True):
            answer = self._partition_answer(wanted, place, run)
            if run is not None and run.size:
                served.append(wanted)
                metrics.FETCHED_BYTES.inc(run.size)
            if answer is not None:
                topics.setdefault(wanted.topic, []).append(answer)
        if self._plan.session is not None:
            rotate(self._plan.session, served)
        answer = SizedAnswer(
            throttle_time=0,
            error_code=ErrorCode.none,
            session_id=self._plan.session_id,
            responses=[_topic_answer(topic, partitions) for topic, partitions in topics.items()],
        )
        answer.size = sum(run.size for run in runs if run is not None)
        self._services.answers.take(answer.size)
        return answer

    def _partition_answer(self, wanted: FetchedPartition, place: Partition | ErrorCode, run: Run | None) -> dict[str, Any] | None:
        """The partition's part; None when an incremental answer leaves it out."""
        error = ErrorCode.none if run is None else run.error
        high_watermark, log_start = -1, -1
        if isinstance(place, Partition) and place.is_open:
            high_watermark, log_start = place.end_offset, place.log_start
            place.refresh_log_start_if_stale()
        changed = (high_watermark, log_start) != (wanted.told_high_watermark, wanted.told_log_start)
        has_data = run is not None and run.size > 0
        if self._plan.incremental and not (changed or has_data or error is not ErrorCode.none):
            return None
        # An error is told again until it is gone, so what was told before it does not count.
        told = (high_watermark, log_start) if error is ErrorCode.none else (-2, -2)
        wanted.told_high_watermark, wanted.told_log_start = told
        committed = getattr(self._call.request, "isolation_level", 0) == READ_COMMITTED
        return {
            "partition_index": wanted.index,
            "error_code": error,
            "high_watermark": high_watermark,
            "last_stable_offset": high_watermark,
            "log_start_offset": log_start,
            "aborted_transactions": () if committed else None,
            "preferred_read_replica": -1,
            "records": run.parts if run is not None else (),
        }


def _topic_answer(topic: Any, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    return {"topic" if isinstance(topic, str) else "topic_id": topic, "partitions": partitions}


def handle(services: Services, call: Call) -> Result:
    plan = services.sessions.plan(call.request, services.clock())
    if plan.error is not ErrorCode.none:
        return {"throttle_time": 0, "error_code": plan.error, "session_id": plan.session_id, "responses": ()}
    return _Fetch(services, call, plan).begin()


API: Final = Api(1, "Fetch", 4, 18, handle, ends_with_client=True)
