"""The life of a transactional id by Kafka's rules, one by one, and against a model with a coordinator that crashes at
any write.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka_sidecar.transactions import machine
from kafka_sidecar.transactions.machine import FROM, NOBODY, Next, Producer
from kafka_sidecar.transactions.metadata import COMPLETED, MAX_EPOCH, PREPARED, TransactionMetadata, TransactionState
from kafka_sidecar.wire.error_code import ErrorCode

A, B = ("t", 0), ("t", 1)
NONE = ErrorCode.NONE
IN_A, IN_BOTH = frozenset({A}), frozenset({A, B})
EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
PID, NEW_PID = 7, 8


def given(state: TransactionState, epoch: int = 3, **more: object) -> TransactionMetadata:
    partitions = frozenset({A}) if state in {ONGOING, *PREPARED} else frozenset()
    metadata = TransactionMetadata(
        transactional_id="x",
        producer_id=PID,
        producer_epoch=epoch,
        timeout_ms=1_000,
        state=state,
        last_update_timestamp=1,
        partitions=partitions,
        start_timestamp=1,
        number=5,
    )
    return replace(metadata, **more)  # type: ignore[arg-type]


def init(metadata: TransactionMetadata, expected: Producer = NOBODY, is_changing: bool = False) -> Next:
    return machine.init_producer_id(metadata, expected, 2_000, NEW_PID, 9, is_changing)


def end(
    metadata: TransactionMetadata | None, epoch: int, commit: bool = True, version: int = 0, pid: int = PID
) -> Next:
    return machine.end(metadata, Producer(pid, epoch), commit, version, NEW_PID, 9, is_changing=False)


def metadata_of(answer: Next) -> TransactionMetadata:
    assert isinstance(answer, TransactionMetadata), answer
    return answer


# --- InitProducerId


def test_the_first_producer_gets_epoch_0() -> None:
    begun = metadata_of(init(machine.new("x", PID, 1_000, 1)))
    assert (begun.state, begun.producer_id, begun.producer_epoch, begun.timeout_ms, begun.last_producer_epoch) == (
        EMPTY,
        PID,
        0,
        2_000,
        -1,
    )


@pytest.mark.parametrize("state", [EMPTY, *COMPLETED])
def test_each_further_one_gets_the_next(state: TransactionState) -> None:
    begun = metadata_of(init(given(state)))
    assert (begun.state, begun.producer_epoch, begun.partitions, begun.number) == (EMPTY, 4, frozenset(), 5)


@pytest.mark.parametrize("state", sorted(PREPARED))
def test_while_markers_are_written_it_waits(state: TransactionState) -> None:
    assert init(given(state)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert init(given(EMPTY), is_changing=True) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_what_is_ongoing_is_aborted_with_an_epoch_that_nobody_is_told() -> None:
    fenced = metadata_of(init(given(ONGOING)))
    assert (fenced.state, fenced.producer_epoch, fenced.last_producer_epoch, fenced.partitions) == (
        PREPARE_ABORT,
        4,
        -1,
        IN_A,
    )
    assert metadata_of(init(machine.complete(fenced, 10))).producer_epoch == 5


def test_a_producer_that_goes_on_after_an_error_says_who_it_was() -> None:
    begun = metadata_of(init(given(COMPLETE_ABORT), Producer(PID, 3)))
    assert (begun.producer_epoch, begun.last_producer_epoch) == (4, 3)
    again = metadata_of(init(begun, Producer(PID, 3)))
    assert (again.producer_epoch, again.last_producer_epoch) == (4, 3), "the answer was lost"
    assert init(begun, Producer(PID, 2)) is ErrorCode.PRODUCER_FENCED
    assert init(begun, Producer(99, 3)) is ErrorCode.PRODUCER_FENCED
    taken_over = metadata_of(init(begun))
    assert init(taken_over, Producer(PID, 3)) is ErrorCode.PRODUCER_FENCED


def test_when_epochs_are_used_up_there_is_a_new_producer_id() -> None:
    last = given(EMPTY, MAX_EPOCH - 1)
    for expected, known in ((NOBODY, -1), (Producer(PID, MAX_EPOCH - 1), MAX_EPOCH - 1)):
        begun = metadata_of(init(last, expected))
        assert (begun.producer_id, begun.producer_epoch, begun.last_producer_epoch, begun.previous_producer_id) == (
            NEW_PID,
            0,
            known,
            PID,
        )
    retried = metadata_of(init(metadata_of(init(last, Producer(PID, MAX_EPOCH - 1))), Producer(PID, MAX_EPOCH - 1)))
    assert (retried.producer_id, retried.producer_epoch) == (NEW_PID, 0)


# --- partitions


def add(
    metadata: TransactionMetadata | None, epoch: int = 3, partitions: set[tuple[str, int]] | None = None, pid: int = PID
) -> Next:
    return machine.add_partitions(metadata, Producer(pid, epoch), partitions or {A}, 0, 9, is_changing=False)


def test_the_first_partition_begins_a_transaction_and_gives_it_the_next_number() -> None:
    for state in (EMPTY, *COMPLETED):
        begun = metadata_of(add(given(state)))
        assert (begun.state, begun.partitions, begun.start_timestamp, begun.number) == (ONGOING, IN_A, 9, 6)


def test_it_is_remembered_from_which_number_on_a_coordinator_of_this_release_has_led() -> None:
    begun = metadata_of(machine.add_partitions(given(EMPTY), Producer(PID, 3), IN_A, 0, 9, is_changing=False))
    assert (begun.number, begun.marked_from, begun.ended_number) == (6, 6, 5)
    later = replace(begun, state=COMPLETE_COMMIT)
    assert later.ended_number == 6
    assert metadata_of(machine.add_partitions(later, Producer(PID, 3), IN_A, 0, 9, is_changing=False)).marked_from == 6


def test_it_is_forgotten_where_it_is_not_certain_which_partitions_they_are() -> None:
    begun = metadata_of(machine.add_partitions(given(EMPTY), Producer(PID, 3), IN_A, 0, 9, is_changing=False))
    for partitions in (IN_A, IN_BOTH):
        joined = metadata_of(
            machine.add_partitions(begun, Producer(PID, 3), partitions, 0, 9, is_changing=False, is_certain=False)
        )
        assert (joined.partitions, joined.marked_from) == (partitions, 0)
        assert (
            machine.add_partitions(joined, Producer(PID, 3), partitions, 0, 9, is_changing=False, is_certain=False)
            is NONE
        )
        assert machine.add_partitions(joined, Producer(PID, 3), partitions, 0, 9, is_changing=False) is NONE
    unsure = metadata_of(
        machine.add_partitions(given(EMPTY), Producer(PID, 3), IN_A, 0, 9, is_changing=False, is_certain=False)
    )
    assert unsure.marked_from == 0


def test_further_ones_join_it() -> None:
    assert add(given(ONGOING)) is ErrorCode.NONE
    both = metadata_of(add(given(ONGOING), partitions={A, B}))
    assert (both.partitions, both.number, both.start_timestamp) == (IN_BOTH, 5, 1)


def test_who_may_not_add() -> None:
    assert add(None) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert add(given(ONGOING), pid=9) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for epoch in (2, 4):
        assert add(given(ONGOING), epoch) is ErrorCode.PRODUCER_FENCED
    for state in PREPARED:
        assert add(given(state)) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_batch_is_verified_against_what_is_ongoing() -> None:
    def verify(metadata: TransactionMetadata | None, partition: tuple[str, int] = A, epoch: int = 3) -> ErrorCode:
        return machine.verify(metadata, Producer(PID, epoch), partition)

    assert verify(given(ONGOING)) is ErrorCode.NONE
    assert verify(given(ONGOING), B) is ErrorCode.TRANSACTION_ABORTABLE
    assert verify(given(COMPLETE_COMMIT)) is ErrorCode.TRANSACTION_ABORTABLE
    assert verify(given(PREPARE_ABORT)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert verify(given(ONGOING), epoch=2) is ErrorCode.PRODUCER_FENCED
    assert verify(None) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


# --- EndTxn, version 1


@pytest.mark.parametrize("commit", [True, False])
def test_a_producer_commits_or_aborts(commit: bool) -> None:
    prepared = metadata_of(end(given(ONGOING), 3, commit))
    assert (prepared.state, prepared.producer_epoch, prepared.partitions) == (
        PREPARE_COMMIT if commit else PREPARE_ABORT,
        3,
        IN_A,
    )
    assert end(prepared, 3, commit) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert end(prepared, 3, not commit) is ErrorCode.CONCURRENT_TRANSACTIONS
    completed = machine.complete(prepared, 10)
    assert (completed.state, completed.partitions, completed.number) == (
        COMPLETE_COMMIT if commit else COMPLETE_ABORT,
        frozenset(),
        5,
    )
    assert end(completed, 3, commit) is ErrorCode.NONE
    assert end(completed, 3, not commit) is ErrorCode.INVALID_TXN_STATE


def test_who_may_not_end() -> None:
    assert end(None, 3) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert end(given(ONGOING), 3, pid=9) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for epoch in (2, 4):
        assert end(given(ONGOING), epoch) is ErrorCode.PRODUCER_FENCED
    assert end(given(EMPTY), 3) is ErrorCode.INVALID_TXN_STATE
    changing = machine.end(given(ONGOING), Producer(PID, 3), True, 0, NEW_PID, 9, is_changing=True)
    assert changing is ErrorCode.CONCURRENT_TRANSACTIONS


# --- EndTxn, version 2 (KIP-890)


@pytest.mark.parametrize("commit", [True, False])
def test_of_version_2_each_transaction_has_an_epoch(commit: bool) -> None:
    prepared = metadata_of(end(given(ONGOING, client_version=2), 3, commit, 2))
    assert (prepared.producer_epoch, prepared.last_producer_epoch) == (4, 3)
    assert end(prepared, 3, commit, 2) is ErrorCode.CONCURRENT_TRANSACTIONS, "a retry"
    assert end(prepared, 4, commit, 2) is ErrorCode.CONCURRENT_TRANSACTIONS, (
        "it was told, and goes on while markers are written"
    )
    assert end(prepared, 5, commit, 2) is ErrorCode.PRODUCER_FENCED
    completed = machine.complete(prepared, 10)
    assert end(completed, 3, commit, 2) is ErrorCode.NONE
    assert end(completed, 3, not commit, 2) is ErrorCode.INVALID_TXN_STATE
    assert end(completed, 2, commit, 2) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("state", [EMPTY, *COMPLETED])
def test_of_version_2_an_empty_transaction_can_be_aborted_and_not_committed(state: TransactionState) -> None:
    aborted = metadata_of(end(given(state), 3, False, 2))
    assert (aborted.state, aborted.producer_epoch, aborted.partitions) == (PREPARE_ABORT, 4, frozenset())
    assert end(given(state, client_version=2), 3, True, 2) is ErrorCode.INVALID_TXN_STATE


def test_of_version_2_the_last_epoch_ends_with_a_new_producer_id() -> None:
    prepared = metadata_of(end(given(ONGOING, MAX_EPOCH - 1, client_version=2), MAX_EPOCH - 1, True, 2))
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (PID, MAX_EPOCH, NEW_PID)
    following = Producer(NEW_PID, 0)
    assert machine.end(prepared, following, False, 2, 1, 9, is_changing=False) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (
        machine.add_partitions(prepared, following, IN_A, 2, 9, is_changing=False) is ErrorCode.CONCURRENT_TRANSACTIONS
    )
    assert (
        machine.init_producer_id(prepared, following, 1_000, 1, 9, is_changing=False)
        is ErrorCode.CONCURRENT_TRANSACTIONS
    )
    assert machine.verify(prepared, following, ("t", 0)) is ErrorCode.CONCURRENT_TRANSACTIONS
    completed = machine.complete(prepared, 10)
    assert (completed.producer_id, completed.producer_epoch, completed.previous_producer_id) == (NEW_PID, 0, PID)
    assert end(completed, MAX_EPOCH - 1, True, 2) is ErrorCode.NONE, "a retry of the producer that was"
    again = machine.init_producer_id(completed, Producer(PID, MAX_EPOCH - 1), 1_000, 1, 9, is_changing=False)
    assert (metadata_of(again).producer_id, metadata_of(again).producer_epoch) == (NEW_PID, 0), (
        "it has not heard of its end"
    )


def test_one_that_lasts_too_long_is_timed_out() -> None:
    assert not machine.is_timed_out(given(ONGOING), 1_001)
    assert machine.is_timed_out(given(ONGOING), 1_002)
    assert not machine.is_timed_out(given(PREPARE_ABORT), 10_000)


# --- all of it


class Coordinator(RuleBasedStateMachine):
    """Two producers of one id, each with what it was told last. A write may be lost with the coordinator, and markers
    be written again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stored: TransactionMetadata | None = None
        self.now = 0
        self.pids = iter(range(100, 10_000))
        self.told: dict[str, Producer] = {}
        self.owner = ""  # whose InitProducerId was answered last
        self.decided: dict[int, bool] = {}  # by number: whether it was committed
        self.answered: dict[int, bool] = {}
        self.log: list[tuple[int, int, bool]] = []  # markers: number, epoch, committed
        # The last end had no transaction, as version 2 allows: it has the number of the one before
        self.last_aborted_nothing = False

    def store(self, becomes: TransactionMetadata, is_lost: bool) -> bool:
        """False where the coordinator died before it was stored: the next one reads what there was."""
        before = TransactionState.EMPTY if self.stored is None else self.stored.state
        assert before in FROM[becomes.state]
        if is_lost:
            return False
        if self.stored is not None:
            assert becomes.number >= self.stored.number
            if becomes.producer_id == self.stored.producer_id:
                assert becomes.producer_epoch >= self.stored.producer_epoch, "epochs never go back"
        self.stored = becomes
        if becomes.state is ONGOING:
            self.last_aborted_nothing = False
        return True

    @rule(who=st.sampled_from("ab"), lost=st.booleans(), goes_on=st.booleans())
    def init(self, who: str, lost: bool, goes_on: bool) -> None:
        self.now += 1
        metadata = self.stored or machine.new("x", next(self.pids), 100, self.now)
        expected = self.told.get(who, NOBODY) if goes_on else NOBODY
        becomes = machine.init_producer_id(metadata, expected, 100, next(self.pids), self.now, is_changing=False)
        if isinstance(becomes, ErrorCode):
            return
        if becomes.state in PREPARED:
            self.decided[becomes.number] = False
            if not self.store(becomes, lost):
                del self.decided[becomes.number]
        elif self.store(becomes, lost):
            self.told[who] = Producer(becomes.producer_id, becomes.producer_epoch)
            self.owner = who

    @rule(who=st.sampled_from("ab"), lost=st.booleans(), partition=st.integers(0, 2), version=st.sampled_from((0, 2)))
    def add(self, who: str, lost: bool, partition: int, version: int) -> None:
        self.now += 1
        becomes = machine.add_partitions(
            self.stored, self.told.get(who, NOBODY), {("t", partition)}, version, self.now, is_changing=False
        )
        if isinstance(becomes, TransactionMetadata):
            assert who == self.owner, "a zombie began a transaction"
            self.store(becomes, lost)

    @rule(who=st.sampled_from("ab"), lost=st.booleans(), commit=st.booleans(), version=st.sampled_from((0, 2)))
    def end(self, who: str, lost: bool, commit: bool, version: int) -> None:
        self.now += 1
        becomes = machine.end(
            self.stored, self.told.get(who, NOBODY), commit, version, next(self.pids), self.now, is_changing=False
        )
        if isinstance(becomes, ErrorCode):
            if becomes is ErrorCode.NONE and self.stored is not None:
                expected = False if self.last_aborted_nothing else self.decided.get(self.stored.number, commit)
                assert expected is commit
            return
        assert who == self.owner, "a zombie ended a transaction"
        number = becomes.number if self.stored is not None and self.stored.state is ONGOING else -1
        if not self.store(becomes, lost):
            return
        if number >= 0:
            self.decided[number] = commit
        else:
            assert not commit, "nothing was committed"
            self.last_aborted_nothing = True

    @precondition(lambda self: self.stored is not None and self.stored.state in PREPARED)
    @rule(lost=st.booleans(), answers=st.booleans())
    def complete(self, lost: bool, answers: bool) -> None:
        """Markers are written, whoever leads by now; then it is completed."""
        assert self.stored is not None
        self.now += 1
        if self.stored.partitions:
            self.log.append((self.stored.number, self.stored.producer_epoch, self.stored.is_committed))
        becomes = machine.complete(self.stored, self.now)
        if self.store(becomes, lost) and answers and becomes.bumps_epochs and self.owner in self.told:
            self.told[self.owner] = Producer(becomes.producer_id, becomes.producer_epoch)

    @rule()
    def time_out(self) -> None:
        self.now += 200
        if self.stored is not None and machine.is_timed_out(self.stored, self.now):
            self.decided[self.stored.number] = False
            self.store(machine.fence(self.stored, self.now), is_lost=False)

    @invariant()
    def every_transaction_has_one_outcome(self) -> None:
        outcomes: dict[int, set[bool]] = {}
        for number, _, committed in self.log:
            outcomes.setdefault(number, set()).add(committed)
        assert all(len(of_one) == 1 for of_one in outcomes.values())
        for number, of_one in outcomes.items():
            assert self.decided[number] in of_one


Coordinator.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestCoordinator = Coordinator.TestCase
