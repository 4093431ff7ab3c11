"""A term: it serves when all is read, and never with a state that was given up."""

from __future__ import annotations

import asyncio

from kafka_sidecar.coordination.term import TRANSITIONS, Phase, Term, TermState
from kafka_sidecar.groups.records import OffsetCommitKey, OffsetCommitValue, Record
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.memory_term_log import MemoryOffsets
from tests.support.states import check_drawing


class State(TermState[Record]):
    """Counts what happens to it. `end_while_loading`: so many loadings end the term, as a write does that is too
    large.
    """

    def __init__(self, offsets: MemoryOffsets, end_while_loading: int = 0) -> None:
        self.term: Term[Record] = Term("t-0", offsets.open, self)
        self.events: list[str] = []
        self._end_while_loading = end_while_loading
        self.may_lead = asyncio.Event()  # until then `on_leading` is at work
        self.may_lead.set()

    def replay(self, record: Record, legacy: bool) -> None:
        self.events.append("replay")

    async def on_loaded(self) -> None:
        self.events.append("loaded")
        if self._end_while_loading:
            self._end_while_loading -= 1
            self.term.restart("too large")

    async def on_leading(self, seconds: float) -> None:
        self.events.append("leading")
        await self.may_lead.wait()

    def on_stored(self, record: Record) -> None:
        self.events.append("stored")

    @property
    def live_record_count(self) -> int:
        return 0

    def on_unloaded(self) -> None:
        self.events.append("unloaded")


async def settled(state: State) -> None:
    async with asyncio.timeout(5):
        while state.term.phase is not Phase.LEADING:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_an_elected_term_loads_and_leads() -> None:
    state = State(MemoryOffsets())
    state.term.elect()
    await settled(state)
    assert state.events == ["loaded", "leading"]


async def test_a_term_that_ends_while_it_loads_does_not_lead_with_what_it_has_forgotten() -> None:
    offsets = MemoryOffsets()
    state = State(offsets, end_while_loading=1)
    state.term.elect()
    await settled(state)
    assert state.events == ["loaded", "unloaded", "loaded", "leading"]
    assert offsets.terms == 2
    state.term.depose("the test is over")


async def test_a_log_that_is_lost_while_the_state_still_tells_what_it_has_loaded_is_taken_again() -> None:
    offsets = MemoryOffsets()
    state = State(offsets)
    state.may_lead.clear()
    state.term.elect()
    await settled(state)
    assert offsets.owner is not None
    offsets.owner.lose(Unavailable("the producer is lost"))
    await asyncio.sleep(0.01)
    state.may_lead.set()
    await settled(state)
    assert state.events == ["loaded", "leading", "unloaded", "loaded", "leading"]
    assert offsets.terms == 2
    state.term.depose("the test is over")


class Failing(State):
    def on_stored(self, record: Record) -> None:
        raise KeyError(record)


async def test_who_wrote_what_could_not_be_applied_is_told_and_the_next_term_reads_it() -> None:
    """A fault of the state's: nobody waits for an answer that never comes."""
    state = Failing(MemoryOffsets())
    state.term.elect()
    await settled(state)
    told: list[ErrorCode] = []
    state.term.store([Record(OffsetCommitKey("g", "t", 0), OffsetCommitValue(42, 7, "m", 100, -1))], told.append)
    assert told == [ErrorCode.NOT_COORDINATOR]
    await settled(state)
    assert state.events[-3:] == ["replay", "loaded", "leading"]
    state.term.depose("the test is over")


def test_the_table_of_phases_is_the_drawing() -> None:
    check_drawing(Phase, TRANSITIONS)


class _Gate(Backoff):
    """A pause whose end the test chooses, to the turn of the loop."""

    def __init__(self) -> None:
        super().__init__(0.0, 0.0)
        self.opened = asyncio.Event()

    async def pause(self) -> None:
        await self.opened.wait()


async def test_a_log_that_is_lost_in_the_turn_in_which_the_term_begins_again_is_followed_by_another() -> None:
    offsets = MemoryOffsets()
    state = State(offsets)
    waiting = asyncio.get_running_loop().create_future()

    async def waits_once(seconds: float) -> None:
        if offsets.terms == 1:
            await waiting

    state.on_leading = waits_once  # type: ignore[method-assign]
    state.term.elect()
    await settled(state)
    state.term._task.backoff = gate = _Gate()
    waiting.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    gate.opened.set()
    assert offsets.owner is not None
    offsets.owner.lose(Unavailable("the producer is lost"))
    await asyncio.sleep(0)
    await settled(state)
    state.term.depose("the test is over")


async def test_a_term_whose_wait_was_cancelled_begins_again() -> None:
    """Something that `on_leading` waited for was cancelled, and not the term."""
    offsets = MemoryOffsets()
    state = State(offsets)
    waiting = asyncio.get_running_loop().create_future()

    async def waits_once(seconds: float) -> None:
        state.events.append("leading")
        if offsets.terms == 1:
            await waiting

    state.on_leading = waits_once  # type: ignore[method-assign]
    state.term.elect()
    await settled(state)
    waiting.cancel()
    async with asyncio.timeout(5):
        while offsets.terms < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    await settled(state)
    assert state.events == ["loaded", "leading", "unloaded", "loaded", "leading"]
    state.term.depose("the test is over")
