"""What Spark's streaming queries have read, as committed offsets of Kafka consumer groups: one line in a job.

    from kafka_sidecar.pipelines.progress import commit_progress
    commit_progress(spark, "localhost:9092")

Spark keeps its place in its checkpoint and commits nothing, so lag tools, Pulsar's backlog and its retention are blind
to it. What is committed here is only for show: a query goes on from its checkpoint. It is the end of the last batch
that is in the checkpoint, so it is never ahead of that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.pipelines.committer import Committer
from kafka_sidecar.pipelines.offsets import Offsets, of_sources

log = logging.getLogger(__name__)

# When a query ends, maybe with its program, it waits up to 15 s for its last commit.
LAST_COMMIT_SECONDS: Final = 15.0
# The only kind of query that reports a batch after the checkpoint has it. With asynchronous progress tracking or a
# continuous trigger, offsets would be committed too early.
TELLS_WHAT_IS_DURABLE: Final = "MicroBatchExecution"


class NotASparkDriver(SidecarError):
    """One sentence for the author of the job."""


def commit_progress(
    spark: SparkSession, bootstrap_servers: str, group: str = "spark-{query}", topics: Iterable[str] | None = None
) -> ProgressListener:
    """From now on the queries of this session commit how far they have come.

    `{query}` in `group` is the query's name, or its id if it has none; both stay when it is started again from its
    checkpoint. `topics` are those to commit, where a query also reads from another Kafka cluster; all by default.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise NotASparkDriver(
            "commit_progress needs the driver's own session: with Spark Connect run it where the driver runs"
        )
    listener = ProgressListener(
        spark, Committer(bootstrap_servers), group, None if topics is None else frozenset(topics)
    )
    spark.streams.addListener(listener)
    return listener


class ProgressListener(StreamingQueryListener):
    """Spark calls it: of a start it waits for the answer, of all else it does not."""

    def __init__(self, spark: SparkSession, committer: Committer, group: str, topics: frozenset[str] | None) -> None:
        self._session = spark
        self._committer = committer
        self._group = group
        self._topics = topics
        self._groups: dict[str, str] = {}  # consumer group by run id, for the queries whose progress may be committed

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        query = self._query(event.id)
        kind = "a query that is not known" if query is None else str(query.getClass().getSimpleName())
        if kind != TELLS_WHAT_IS_DURABLE:
            log.error(
                "the progress of query %s is not committed: %s tells of batches before its checkpoint has them "
                "(asyncProgressTrackingEnabled and continuous triggers do that)",
                event.name or event.id,
                kind,
            )
            return
        self._groups[str(event.runId)] = self._group.format(query=event.name or event.id)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        self._commit(progress.runId, of_sources((source.description, source.endOffset) for source in progress.sources))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing new. What an earlier run of the query had no time to tell is made good here."""
        query = self._query(event.id) if str(event.runId) in self._groups else None
        if query is None:  # the query's progress may not be committed, or the query has just ended
            return
        places = query.committedOffsets().iterator()
        ends = []
        while places.hasNext():
            place = places.next()
            ends.append((str(place._1().toString()), str(place._2().json())))
        self._commit(event.runId, of_sources(ends))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        group = self._groups.pop(str(event.runId), None)
        if group is None:
            return
        if not self._committer.flush(LAST_COMMIT_SECONDS):
            log.warning("query %s has ended before the last progress of group %s could be committed", event.id, group)
        self._committer.forget(group)

    def _commit(self, run_id: Any, offsets: Offsets) -> None:
        group = self._groups.get(str(run_id))
        wanted = {at: offset for at, offset in offsets.items() if self._topics is None or at[0] in self._topics}
        if group is not None and wanted:
            self._committer.commit(group, wanted)

    def _query(self, query_id: Any) -> Any:
        """Spark's own object of a query, None where it does not run."""
        query = self._session._jsparkSession.streams().get(str(query_id))
        return None if query is None else query.streamingQuery()
