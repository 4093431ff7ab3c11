"""Tables of what was measured, and the ratios that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.batches import BatchCost
from bench.crowd import CrowdCost
from bench.formats import FormatCost
from bench.groups import GroupCost
from bench.latency import Latency
from bench.opening import OpeningCost
from bench.pipelines import PipelineCost
from bench.reading import ReadingCost
from bench.sizes import SizeCost
from bench.spark import SparkCost
from bench.throughput import Throughput
from bench.transactions import FLUSHING, TransactionCost
from bench.waiting import WaitingCost


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)
    )


def throughput_table(rows: Sequence[Throughput]) -> str:
    head = (
        "case",
        "system",
        "write MiB/s",
        "p50 ms",
        "p99 ms",
        "cpu s/GiB",
        "broker",
        "read MiB/s",
        "cpu s/GiB",
        "MiB",
    )
    return _table(
        head,
        [
            (
                row.case,
                row.system,
                f"{row.produce_mib_s:.1f}",
                f"{row.produce_p50_ms:.1f}",
                f"{row.produce_p99_ms:.1f}",
                f"{row.produce_cpu_s_per_gib:.1f}",
                "" if row.broker_cpu_s_per_gib is None else f"{row.broker_cpu_s_per_gib:.1f}",
                f"{row.consume_mib_s:.1f}",
                f"{row.consume_cpu_s_per_gib:.1f}",
                f"{row.resident_mib:.0f}",
            )
            for row in rows
        ],
    )


def latency_table(rows: Sequence[Latency], end_to_end: dict[str, tuple[float, float]]) -> str:
    head = ("path", "pace", "acked p50", "p99", "delivered p50", "p99", "EndToEndLatency avg", "p99")
    return _table(
        head,
        [
            (
                row.path,
                row.pace,
                f"{row.acked_p50_ms:.2f}",
                f"{row.acked_p99_ms:.2f}",
                f"{row.delivered_p50_ms:.2f}",
                f"{row.delivered_p99_ms:.2f}",
                *(f"{value:.2f}" for value in end_to_end.get(row.path, ())),
                *("" for _ in range(0 if row.path in end_to_end else 2)),
            )
            for row in rows
        ],
    )


def group_table(rows: Sequence[GroupCost]) -> str:
    head = (
        "system",
        "protocol",
        "groups",
        "members",
        "join s",
        "steady cpu",
        "heartbeat p50 ms",
        "p99",
        "rebalance s",
        "added MiB",
    )
    return _table(
        head,
        [
            (
                row.system,
                row.protocol,
                str(row.groups),
                str(row.members),
                f"{row.join_seconds:.1f}",
                f"{row.steady_cpu:.0%}",
                f"{row.heartbeat_p50_ms:.1f}",
                f"{row.heartbeat_p99_ms:.1f}",
                f"{row.rebalance_seconds:.1f}",
                f"{row.added_mib:.0f}",
            )
            for row in rows
        ],
    )


def ratios(rows: Sequence[Throughput]) -> dict[str, dict[str, float]]:
    """The sidecar's rates over those of the others, by case."""
    found: dict[str, dict[str, float]] = {}
    for ours in rows:
        if ours.system != "sidecar":
            continue
        case: dict[str, float] = {}
        for other in rows:
            if other.system != "sidecar" and other.case == ours.case:
                case[f"write / {other.system}"] = ours.produce_mib_s / other.produce_mib_s
                case[f"read / {other.system}"] = ours.consume_mib_s / other.consume_mib_s
        found[ours.case] = case
    return found


def ratio_table(found: dict[str, dict[str, float]]) -> str:
    names = list(dict.fromkeys(name for values in found.values() for name in values))
    cells = [
        (case, *(f"{values[name]:.2f}" if name in values else "" for name in names)) for case, values in found.items()
    ]
    return _table(("sidecar", *names), cells)


def crowd_table(rows: Sequence[CrowdCost]) -> str:
    head = ("producers", "partitions", "system", "batches/s", "us a batch", "us broker")
    return _table(
        head,
        [
            (
                str(row.producers),
                str(row.partitions),
                row.system,
                f"{row.batches_per_s:.0f}",
                f"{row.us_a_batch:.0f}",
                "" if row.broker_us_a_batch is None else f"{row.broker_us_a_batch:.0f}",
            )
            for row in rows
        ],
    )


def batch_table(rows: Sequence[BatchCost]) -> str:
    head = ("Produce, a closed loop", "least us a batch", "quartile", "cpu s/GiB", "batches/s")
    return _table(
        head,
        [
            (
                row.case,
                f"{row.least_us:.0f}",
                f"{row.quartile_us:.0f}",
                f"{row.cpu_s_per_gib:.1f}",
                f"{row.batches_per_s:.0f}",
            )
            for row in rows
        ],
    )


def transaction_table(rows: Sequence[TransactionCost], acknowledged_ms: Mapping[str, float]) -> str:
    head = (
        "client",
        "records",
        "partitions",
        "system",
        "transactions/s",
        "commit p50 ms",
        "p99",
        "of plain",
        "read_committed / uncommitted",
    )
    table = _table(
        head,
        [
            (
                row.client,
                str(row.records),
                str(row.partitions),
                row.system,
                f"{row.transactions_per_s:.0f}",
                f"{row.commit_p50_ms:.1f}",
                f"{row.commit_p99_ms:.1f}",
                f"{row.transactions_per_s / row.plain_per_s:.2f}",
                f"{row.committed_over_uncommitted:.2f}",
            )
            for row in rows
        ],
    )
    table += f"\n{FLUSHING}: on a Pulsar with journalFlushWhenQueueEmpty=true"
    return table + "".join(
        f"\n{system}: Pulsar acknowledges a native message in {took:.1f} ms" for system, took in acknowledged_ms.items()
    )


def size_table(rows: Sequence[SizeCost]) -> str:
    return _table(
        ("starting and growing", "seconds", "MiB", "idle, % of a core"),
        [
            (
                row.what,
                f"{row.seconds:.2f}",
                "" if row.mib is None else f"{row.mib:.0f}",
                "" if row.idle_percent is None else f"{row.idle_percent:.1f}",
            )
            for row in rows
        ],
    )


def opening_table(rows: Sequence[OpeningCost]) -> str:
    return _table(
        ("", "cpu ms each", "seconds for all"), [(row.what, f"{row.cpu_ms:.3f}", f"{row.seconds:.2f}") for row in rows]
    )


def format_table(rows: Sequence[FormatCost]) -> str:
    head = ("format pulsar", "us a record, to Pulsar", "to Kafka")
    return _table(head, [(row.what, f"{row.encode_us:.2f}", f"{row.decode_us:.2f}") for row in rows])


def waiting_table(rows: Sequence[WaitingCost]) -> str:
    head = ("ten consumers wait on 200 empty partitions each", "of a core", "us a partition")
    return _table(head, [(row.how, f"{row.of_a_core:.1%}", f"{row.us_a_partition:.1f}") for row in rows])


def reading_table(rows: Sequence[ReadingCost]) -> str:
    return _table(
        ("reading", "cpu s/GiB", "MiB/s"), [(row.state, f"{row.cpu_s_per_gib:.2f}", f"{row.mib_s:.0f}") for row in rows]
    )


def spark_table(rows: Sequence[SparkCost]) -> str:
    return _table(
        ("Spark reads 16 partitions", "seconds", "records/s", "MiB/s", "server cpu s"),
        [
            (
                row.system,
                f"{row.seconds:.1f}",
                f"{row.records_per_s:.0f}",
                f"{row.mib_s:.0f}",
                f"{row.server_cpu_s:.1f}",
            )
            for row in rows
        ],
    )


def pipeline_table(rows: Sequence[PipelineCost]) -> str:
    """Each pipeline stands behind what it is compared with."""
    cells = [(row.what, f"{row.seconds:.1f}", f"{row.records_per_s:.0f}", f"{row.mb_s:.1f}") for row in rows]
    plain = (row.records_per_s for row in rows[::2])
    ratios = [f"{row.records_per_s / before:.2f}" for row, before in zip(rows[1::2], plain, strict=True)]
    shares = [text for ratio in ratios for text in ("", ratio)]
    head = ("what", "seconds", "records/s", "MB/s", "of plain")
    return _table(head, [(*row, share) for row, share in zip(cells, shares, strict=True)])
