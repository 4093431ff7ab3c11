"""What is going to happen in a run. A seed draws one. One that is worth keeping is kept as a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from random import Random
from typing import Any, Final

from kafka_sidecar.internal_topics.snapshot_parts import PART_BYTES
from kafka_sidecar.partition.fold.log_times import DAY_MS, MARKS
from kafka_sidecar.partition.fold.producer_states import MOST_AWAKE
from kafka_sidecar.partition.follow import replay
from kafka_sidecar.partition.log.unfolding import LARGE_RECORDS
from kafka_sidecar.partition.snapshots.fold_snapshots import STORED_AGAIN_AFTER
from tests.simulation.chance import Chance

# As limits.replay_entries has it.
WINDOW_ENTRIES: Final = 2_000
# Longer than any retry takes: those are recognised.
SHORT_EXPIRY_MS: Final = 180_000
QUIET_SECONDS: Final = 260.0
AWAY_SECONDS: Final = 60.0
AGES_SECONDS: Final = 25.0
# Longer than any request, opening and pause together: who is not done by then is stuck.
PATIENCE_SECONDS: Final = 600.0
# Faults come while clients are at work.
BUSY_SECONDS: Final = 30.0
# A batch without a producer that lands so many entries behind its second try is told by those alone that have seen both
# (ADR 3).
LATE_ENTRIES: Final = 64


class FaultKind(StrEnum):
    CUT = "cut"  # some connections end; what is on its way may land or be lost
    UNLOAD = "unload"  # the topic moves: all its connections end, a new ledger begins
    CRASH = "crash"  # the broker dies: what has no receipt may be recovered or gone
    KILL = "kill"  # a sidecar, with kill -9
    PAUSE = "pause"  # a sidecar stands still
    ROLL = "roll"  # a new ledger, without anybody noticing
    CLOSE = "close"  # a sidecar closes the partition: idle, or a topic forgotten
    MARK = "mark"  # a replicated subscription writes markers: they take an index, and no reader is given them
    TRIM = "trim"  # retention takes the oldest ledger, if it is not the last one
    DELETE = "delete"  # a client deletes records: the log starts later, for all
    AWAY = "away"  # a sidecar stands still, and retention takes what it has not read
    # Producers stand still; retention takes what they wrote last; sidecars close the partition, or are killed
    AGES = "ages"
    CONFIG = "config"  # the topic's configs change: the format of its entries, say
    REMAKE = "remake"  # the topic is deleted, and another of the same name is made
    NATIVE = "native"  # another program writes entries that some can read, and nobody can count
    QUIET = "quiet"  # producers with ids write nothing until others may have forgotten them


class ClientKind(StrEnum):
    IDEMPOTENT = "idempotent"
    PLAIN = "plain"  # without a producer id
    FORGETFUL = "forgetful"  # likewise, with acks=0
    TRANSACTIONAL = "transactional"
    CONSUMER = "consumer"
    COMMITTED = "committed"  # a consumer of read_committed


@dataclass(frozen=True, slots=True)
class Fault:
    at: float  # seconds
    kind: FaultKind
    node: int = 0
    seconds: float = 0.0  # how long it takes
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    kind: ClientKind
    batches: int = 0  # of a transactional producer, transactions
    wanders: float = 0.0  # how often it goes to another sidecar than its own
    has_epochs_of_transactions: bool = False  # each transaction has an epoch of its own (KIP-890)
    partition: int = 0  # those that have the same name in several have one connection to a sidecar


@dataclass(frozen=True, slots=True)
class Bounds:
    """Constants, and how the network behaves: bounds that are never reached are where faults live."""

    nodes: int = 2
    replay_entries: int = WINDOW_ENTRIES
    entries_before: int = 64  # where folds of a partition and of readers begin, before the place that they are for
    cache_bytes: int = 3_000
    batches_per_entry: int = 100
    slowest: float = 0.05  # seconds of one way
    lost_receipts: float = 0.0
    refused_sends: float = 0.0
    slow_stores: float = 0.0  # of entries, for which bookies take seconds
    failed_questions: float = 0.0  # of the admin API, and requests to open
    # Readers that subscribe to what the broker is closing, of those that come soon after an unload
    orphans: float = 0.0
    deduplicates: bool = False
    wastes_indexes: bool = False  # of entries that could not be added, as brokers before 2.9.2 do
    names_markers: bool = False  # as the last entry, as brokers before 3.3 do
    keeps: bool = True  # what sidecars know of producers
    lost_values: float = 0.05  # of what is kept
    failed_values: float = 0.0  # of questions for what is kept
    too_far: int = (
        replay.TOO_FAR_ENTRIES
    )  # behind what is kept: they are read only where a sidecar may have written among them
    most_awake: int = MOST_AWAKE  # producers of a fold that are not packed
    flips: bool = False  # other partitions of the process take the room, and give it back
    expiry_ms: int = DAY_MS  # of producers
    marks: int = MARKS  # of time, in an expiry
    written_before: int = 0  # batches of each producer, by sidecars of a release that kept nothing
    new_epochs: float = 0.0  # how often a producer begins one, where it has nothing on its way
    gives_up: float = 0.0  # how often a producer begins an epoch though what it has sent may land yet
    most_unjudged: int = replay.MOST_UNJUDGED  # batches of which the window tells too little
    kept_after: int = STORED_AGAIN_AFTER  # offsets, what is known of transactions is kept
    part_bytes: int = PART_BYTES  # of a value that is kept in parts
    sent_away: float = 0.0  # batches that are refused because another sidecar leads the partition
    large_records: int = LARGE_RECORDS  # a batch of more is looked into in a thread
    is_replicated: bool = True  # to a second cluster: entries say how many records they hold


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    bounds: Bounds
    clients: tuple[Client, ...]
    faults: tuple[Fault, ...]

    @property
    def partitions(self) -> int:
        return 1 + max((one.partition for one in self.clients), default=0)

    def of(self, partition: int) -> Plan:
        """What concerns one partition."""
        clients = tuple(one for one in self.clients if one.partition == partition)
        return replace(self, clients=clients, faults=tuple(one for one in self.faults if one.partition == partition))

    def of_kind(self, kind: ClientKind) -> list[Client]:
        return [one for one in self.clients if one.kind is kind]

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> Plan:
        clients = tuple(Client(**{**one, "kind": ClientKind(one["kind"])}) for one in data["clients"])
        faults = tuple(Fault(**{**one, "kind": FaultKind(one["kind"])}) for one in data["faults"])
        return cls(data["seed"], Bounds(**data["bounds"]), clients, faults)


_DRAWN_APART: Final = frozenset(
    {
        FaultKind.MARK,
        FaultKind.QUIET,
        FaultKind.DELETE,
        FaultKind.AWAY,
        FaultKind.AGES,
        FaultKind.CONFIG,
        FaultKind.REMAKE,
        FaultKind.NATIVE,
    }
)


# Faults of one partition. None of them ends or stops a process.
_OF_ONE_PARTITION: Final = (
    FaultKind.CUT,
    FaultKind.UNLOAD,
    FaultKind.CRASH,
    FaultKind.ROLL,
    FaultKind.CLOSE,
    FaultKind.TRIM,
)
TWO_PARTITIONS: Final = 0.3
WITH_NATIVES: Final = 0.25


@dataclass(frozen=True, slots=True)
class Swarm:
    """How plans are drawn: some have one kind of fault alone."""

    # Markers have known faults left (docs/adr/0023-a-log-of-markers.md): they are drawn with --markers. It is quiet
    # where producers expire.
    # Some delete records or the topic, change its configs, or lose much unread, and most do not.
    kinds: tuple[FaultKind, ...] = tuple(kind for kind in FaultKind if kind not in _DRAWN_APART)
    replay_entries: tuple[int, ...] = (4, 12, WINDOW_ENTRIES)
    entries_before: tuple[int, ...] = (1, 8, 64, 64)
    clients: tuple[ClientKind, ...] = tuple(ClientKind)


def drawn(seed: int, swarm: Swarm | None = None) -> Plan:
    swarm = swarm or Swarm()
    draw, memory, transactions = Chance(seed).of("plan"), Chance(seed).of("memory"), Chance(seed).of("transactions")
    kept, behind = Chance(seed).of("lost values"), Chance(seed).of("what is behind")
    nodes = draw.choice((2, 2, 3, 5))
    rough = draw.random() < 0.8  # else the network does no wrong
    bounds = Bounds(
        nodes=nodes,
        replay_entries=draw.choice(swarm.replay_entries),
        entries_before=draw.choice(swarm.entries_before),
        cache_bytes=draw.choice((1, 3_000, 100_000)),
        batches_per_entry=draw.choice((1, 2, 100)),
        slowest=draw.choice((0.002, 0.05, 0.3)),
        lost_receipts=draw.choice((0.0, 0.02)) if rough else 0.0,
        refused_sends=draw.choice((0.0, 0.01, 0.05)) if rough else 0.0,
        failed_questions=draw.choice((0.0, 0.02)) if rough else 0.0,
        deduplicates=draw.random() < 0.2,
        names_markers=draw.random() < 0.5,
        most_awake=memory.choice((1, 2, MOST_AWAKE)),
        flips=memory.random() < 0.3,
        expiry_ms=memory.choice((DAY_MS, DAY_MS, DAY_MS, SHORT_EXPIRY_MS)),
        marks=memory.choice((MARKS, 3_000)),
        written_before=memory.choice((0, 0, 5, 40)),
        new_epochs=memory.choice((0.0, 0.1)),
        gives_up=Chance(seed).of("patience").choice((0.0, 0.0, 0.0, 0.05)),
        most_unjudged=memory.choice((1, 4, replay.MOST_UNJUDGED)),
        lost_values=kept.choice((0.05, 0.05, 0.7)),
        kept_after=transactions.choice((5, 40, STORED_AGAIN_AFTER)),
        failed_values=behind.choice((0.02, 0.02, 0.3)) if rough else 0.0,
        too_far=behind.choice((3, 20, replay.TOO_FAR_ENTRIES)),
        wastes_indexes=Chance(seed).of("wasted indexes").random() < 0.25,
        orphans=Chance(seed).of("orphans").choice((0.0, 0.05, 0.3)) if rough else 0.0,
        slow_stores=Chance(seed).of("bookies").choice((0.0, 0.0, 0.02)) if rough else 0.0,
        part_bytes=Chance(seed).of("parts").choice((100, 300, PART_BYTES)),
        large_records=Chance(seed).of("large").choice((0, 1, LARGE_RECORDS)),
        is_replicated=Chance(seed).of("replicated").random() < 0.7,
        sent_away=Chance(seed).of("redirects").choice((0.0, 0.0, 0.02, 0.2)),
    )
    if bounds.part_bytes < PART_BYTES:
        # Else no value is ever stored or read: each of its parts may be lost.
        bounds = replace(
            bounds, lost_values=min(bounds.lost_values, 0.01), failed_values=min(bounds.failed_values, 0.02)
        )
    if bounds.expiry_ms == SHORT_EXPIRY_MS:
        # Else a retry may have to wait until its producer has expired, for what is kept can't be read or written.
        bounds = replace(
            bounds, lost_values=min(bounds.lost_values, 0.05), failed_values=min(bounds.failed_values, 0.02)
        )
        # Who has expired may begin anywhere. If its first batch were refused alone, it would begin with the next that
        # is on its way.
        bounds = replace(bounds, refused_sends=0.0)
    if bounds.replay_entries == WINDOW_ENTRIES and bounds.most_unjudged == replay.MOST_UNJUDGED:
        # Where nothing can be kept the window is all that is promised: here it holds all that is written.
        bounds = replace(bounds, keeps=kept.random() < 0.5)
    kinds = swarm.kinds if draw.random() < 0.7 else (draw.choice(swarm.kinds),)
    faults, at = [], 0.0
    rate = draw.choice((0.3, 1.0, 3.0))
    while (at := at + draw.expovariate(rate)) < BUSY_SECONDS:
        faults.append(
            Fault(round(at, 4), draw.choice(kinds), draw.randrange(nodes), draw.choice((0.5, 3.0, 12.0, 40.0)))
        )
    if bounds.expiry_ms == SHORT_EXPIRY_MS:
        for _ in range(memory.choice((1, 2, 4))):
            faults.append(Fault(round(memory.uniform(0.5, BUSY_SECONDS), 4), FaultKind.QUIET, 0, QUIET_SECONDS))
    deletes = Chance(seed).of("deletes")
    for _ in range(deletes.choice((0, 0, 0, 1, 4))):
        faults.append(Fault(round(deletes.uniform(0.5, BUSY_SECONDS), 4), FaultKind.DELETE, deletes.randrange(nodes)))
    away = Chance(seed).of("away")
    for _ in range(away.choice((0, 0, 1, 2))):
        faults.append(
            Fault(round(away.uniform(0.5, BUSY_SECONDS), 4), FaultKind.AWAY, away.randrange(nodes), AWAY_SECONDS)
        )
    ages = Chance(seed).of("ages")
    for _ in range(ages.choice((0, 0, 1, 2))):
        faults.append(Fault(round(ages.uniform(0.5, BUSY_SECONDS), 4), FaultKind.AGES, 0, AGES_SECONDS))
    configs = Chance(seed).of("configs")
    for _ in range(configs.choice((0, 0, 1, 4))):
        faults.append(Fault(round(configs.uniform(0.0, BUSY_SECONDS), 4), FaultKind.CONFIG))
    wanders = draw.choice((0.0, 0.1, 0.4))
    clients = []
    for kind, most, batches in (
        (ClientKind.IDEMPOTENT, 3, 30),
        (ClientKind.PLAIN, 1, 30),
        (ClientKind.CONSUMER, 3, 0),
    ):
        count = draw.randint(1, most) if kind in swarm.clients else 0
        if kind is ClientKind.PLAIN and bounds.entries_before < LATE_ENTRIES:
            count = 0
        clients += [Client(f"{kind}-{number}", kind, batches, wanders) for number in range(count)]
    if ClientKind.TRANSACTIONAL in swarm.clients:
        clients += _with_transactions(transactions, wanders)
    if ClientKind.FORGETFUL in swarm.clients:
        clients += _forgetful(Chance(seed).of("acks"), bounds, wanders)
    beside = Chance(seed).of("beside")
    if beside.random() < TWO_PARTITIONS:
        clients += _beside(beside, tuple(clients))
        faults += _faults_beside(beside, nodes, rate)
    if not any(client.kind is ClientKind.TRANSACTIONAL for client in clients):
        lives = Chance(seed).of("lives")
        for _ in range(lives.choice((0, 0, 0, 1, 2))):
            faults.append(
                Fault(round(lives.uniform(0.5, BUSY_SECONDS), 4), FaultKind.REMAKE, 0, lives.choice((0.0, 0.2, 3.0)))
            )
    natives = Chance(seed).of("natives")
    if natives.random() < WITH_NATIVES:
        bounds = replace(bounds, is_replicated=False)  # what a replicator makes of such entries is not modelled
        for _ in range(natives.choice((1, 4, 20))):
            faults.append(Fault(round(natives.uniform(0.0, BUSY_SECONDS), 4), FaultKind.NATIVE))
    faults.sort(key=lambda fault: fault.at)
    return Plan(seed, bounds, tuple(clients), tuple(faults))


def _with_transactions(draw: Random, wanders: float) -> Iterator[Client]:
    count = draw.choice((0, 0, 1, 2))
    for number in range(count):
        yield Client(f"transactional-{number}", ClientKind.TRANSACTIONAL, 8, wanders, draw.random() < 0.5)
    for number in range(draw.choice((1, 2)) if count else 0):
        yield Client(f"committed-{number}", ClientKind.COMMITTED)


def _forgetful(draw: Random, bounds: Bounds, wanders: float) -> Iterator[Client]:
    if bounds.entries_before >= LATE_ENTRIES and draw.random() < 0.3:
        yield Client("forgetful-0", ClientKind.FORGETFUL, 30, wanders)


def _beside(draw: Random, clients: Sequence[Client]) -> Iterator[Client]:
    """Producers that write to a second partition as well, through the same connections, and who reads there."""
    for client in clients:
        if client.kind in (ClientKind.IDEMPOTENT, ClientKind.PLAIN):
            yield replace(client, partition=1)
    yield Client("consumer-beside", ClientKind.CONSUMER, 0, draw.choice((0.0, 0.4)), partition=1)


def _faults_beside(draw: Random, nodes: int, rate: float) -> Iterator[Fault]:
    """What happens to the first partition's sidecars happens to this one too."""
    at = 0.0
    while (at := at + draw.expovariate(rate)) < BUSY_SECONDS:
        yield Fault(round(at, 4), draw.choice(_OF_ONE_PARTITION), draw.randrange(nodes), partition=1)
