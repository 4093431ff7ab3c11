"""Topics that were deleted and made anew while this sidecar still took their names for the earlier ones.

For up to a minute it commits offsets under the id of the earlier topic, although the client means the one that is there. When it learns of
the new id, it knows which those are: they were committed since the new topic was made. Pulsar's clock says when that was, and this machine's
when they were committed. If the clocks differ, what was committed in that difference is taken for the other topic's.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from datetime import datetime
from typing import Final, NamedTuple

MOST_REMEMBERED: Final = 1_000


class _MadeAnew(NamedTuple):
    topic_id: uuid.UUID
    since: int  # milliseconds since 1970


class MadeAnew:
    def __init__(self) -> None:
        self._by_earlier_id: OrderedDict[uuid.UUID, _MadeAnew] = OrderedDict()

    def note(self, earlier: uuid.UUID, topic_id: uuid.UUID, since: int) -> None:
        self._by_earlier_id[earlier] = _MadeAnew(topic_id, since)
        if len(self._by_earlier_id) > MOST_REMEMBERED:
            self._by_earlier_id.popitem(last=False)

    def is_meant(self, topic_id: uuid.UUID, committed_id: uuid.UUID | None, committed_at: int) -> bool:
        """Whether what was committed under an earlier id is of the topic with this one."""
        found = None if committed_id is None else self._by_earlier_id.get(committed_id)
        return found is not None and found.topic_id == topic_id and committed_at >= found.since


def milliseconds(created: str) -> int | None:
    """When a log was created, as Pulsar writes it; None where it is written otherwise."""
    try:
        return int(datetime.fromisoformat(created).timestamp() * 1_000)
    except ValueError:
        return None
