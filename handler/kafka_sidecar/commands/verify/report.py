"""What was found, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from kafka_sidecar.commands.verify.audit import Finding, Kind, PartitionReport, Severity, severity_of


def lines(report: PartitionReport) -> Iterator[str]:
    """One partition."""
    last = (report.next_offset or 0) - 1
    offsets = "no offsets" if report.first_offset is None else f"offsets {report.first_offset} to {last}"
    offloaded = f", {report.offloaded_ledgers} offloaded" if report.offloaded_ledgers else ""
    formats = ", ".join(f"{count} {name}" for name, count in report.formats.most_common())
    yield (
        f"{report.name}: {offsets}, {report.batches} batches in {report.entries} entries ({formats or 'none'}), "
        f"{megabytes(report.bytes)}, {report.ledgers} ledgers{offloaded}"
    )
    for kind in Kind:
        if report.counts[kind]:
            yield f"  {severity_of(kind).value:8} {report.counts[kind]} {kind.value}"
            of_kind = [finding for finding in report.findings if finding.kind is kind]
            yield from (f"           {_line(finding)}" for finding in of_kind)
            if severity_of(kind) is not Severity.NOTE and report.counts[kind] > len(of_kind) >= 20:
                yield "           and more"


def _line(finding: Finding) -> str:
    where = [] if finding.position is None else [f"entry {finding.position}"]
    if finding.first_offset >= 0:
        where.append(f"offsets {finding.first_offset} to {finding.last_offset}")
    return f"{', '.join(where)}: {finding.text}"


def summary(reports: Sequence[PartitionReport]) -> str:
    faults = sum(report.faults for report in reports)
    entries, size = sum(report.entries for report in reports), sum(report.bytes for report in reports)
    read = f"{len(reports)} partitions, {entries} entries, {megabytes(size)}"
    if faults:
        return f"{read}: {faults} fault{'s' * (faults != 1)}"
    gaps = sum(report.counts[Kind.GAP] for report in reports)
    return (
        f"{read}: no fault, but {gaps} offsets that nobody can account for"
        if gaps
        else f"{read}: every index is accounted for"
    )


def as_json(reports: Sequence[PartitionReport]) -> str:
    return json.dumps(
        {"faults": sum(report.faults for report in reports), "partitions": [_object(report) for report in reports]},
        indent=2,
    )


def _object(report: PartitionReport) -> dict[str, object]:
    return {
        "partition": report.name,
        "first_offset": report.first_offset,
        "next_offset": report.next_offset,
        "entries": report.entries,
        "batches": report.batches,
        "bytes": report.bytes,
        "ledgers": report.ledgers,
        "offloaded_ledgers": report.offloaded_ledgers,
        "formats": dict(report.formats),
        "counts": {kind.name.lower(): count for kind, count in report.counts.items()},
        "findings": [_finding(finding) for finding in report.findings],
    }


def _finding(finding: Finding) -> dict[str, object]:
    has_offsets = finding.first_offset >= 0
    return {
        "kind": finding.kind.name.lower(),
        "severity": severity_of(finding.kind).value,
        "position": None if finding.position is None else str(finding.position),
        "first_offset": finding.first_offset if has_offsets else None,
        "last_offset": finding.last_offset if has_offsets else None,
        "text": finding.text,
    }


def megabytes(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MiB"
