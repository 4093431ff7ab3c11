"""The page of what was measured stands alone, and shows every number that it is given."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from bench.page import page

MEASURED: dict[str, Any] = {
    "at": 1_795_000_000,
    "commit": "abc1234",
    "machine": "2 cores",
    "throughput": [
        {
            "case": "1 KiB & more",
            "system": system,
            "produce_mib_s": rate,
            "consume_mib_s": 4 * rate,
            "produce_cpu_s_per_gib": 12.5,
        }
        for system, rate in (("sidecar", 18.5), ("kafka", 21.25), ("pulsar", 20.0))
    ],
    "crowds": [{"system": "sidecar", "producers": 100, "partitions": 1, "batches_per_s": 18_000.0}],
    "transactions": [
        {"client": "java", "system": "sidecar", "records": 100, "partitions": 16, "transactions_per_s": 120.5}
    ],
    "sizes": [{"what": "import", "seconds": 0.375, "mib": None}],
    "latency": [{"path": "kafka", "pace": "single", "acked_p50_ms": 2.125}],
}
HISTORY = [
    {"at": 1_795_000_000 + day, "commit": f"c{day}", "costs": {"a batch": 100.0 + day, "idle <MiB>": 58.0}}
    for day in range(3)
]


class _Shown(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.shapes = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        self.shapes += tag in ("rect", "circle")
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_stands_alone_and_shows_all_that_was_measured() -> None:
    shown = _Shown()
    shown.feed(page(MEASURED, HISTORY))
    text = "\n".join(shown.texts)
    assert not shown.links
    assert not shown.open
    for part in (
        "1 KiB & more",
        "18.5 MiB/s sidecar",
        "21.2 MiB/s kafka",
        "100 producers, 1 partition",
        "2.12 ms kafka",
        "java, 100 to 16 partitions",
        "120 a second sidecar",
        "0.375 s sidecar",
        "abc1234",
        "idle <MiB>",
    ):
        assert part in text, part
    assert shown.shapes == 3 * 3 + 1 + 1 + 1 + 1 + 2 * len(HISTORY)


def test_a_page_without_a_history_has_only_the_run() -> None:
    assert "from run to run" not in page(MEASURED, [])
