"""Admin REST: another broker when one is down, redirects with method and body, errors by kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from kafka_sidecar.pulsar.admin import AlreadyExists, PulsarAdmin, names_a_subscription
from kafka_sidecar.pulsar.admin.connections import NoAnswer, NotConnected, Response
from kafka_sidecar.pulsar.admin.subscriptions import _subscription
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable


class Request(NamedTuple):
    method: str
    url: str
    body: bytes | None

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


Answer = Callable[[Request], Response]


class Connections:
    """Brokers that answer as a test has it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def request(self, method: str, url: str, body: bytes | None = None, content_type: str = "") -> Response:
        await asyncio.sleep(0)
        return self._answer(Request(method, url, body))


def admin(urls: str, answer: Answer) -> PulsarAdmin:
    made = PulsarAdmin(urls)
    made._http._connections = Connections(answer)  # type: ignore[assignment]
    return made


def response(status: int, body: object = None, **headers: str) -> Response:
    return Response(
        status, {"content-type": "application/json", **headers}, b"" if body is None else json.dumps(body).encode()
    )


def page(text: str, kind: str = "text/html") -> Response:
    return Response(200, {"content-type": kind}, text.encode())


def first_is_dead(asked: list[str]) -> Answer:
    def answer(request: Request) -> Response:
        asked.append(request.host)
        if request.host == "one":
            raise NotConnected("refused")
        return response(200, {"partitions": 3, "creationDate": "today"})

    return answer


async def test_a_broker_that_is_down_is_passed_over() -> None:
    asked: list[str] = []
    client = admin("http://one,http://two", first_is_dead(asked))
    assert await client.topics.partitions("persistent://public/default/t") == 3
    assert await client.topics.partitions("persistent://public/default/t") == 3
    assert asked == ["one", "two", "two"], "the one that answered is asked first from then on"


def knowing_the_clusters(answer: Answer) -> Answer:
    """As any broker does. A 404 to something else counts then."""
    return lambda request: response(200, ["standalone"]) if request.url.endswith("/clusters") else answer(request)


def strange_is(hosts: set[str]) -> Answer:
    """They answer 404 to everything. The others know the clusters, and nothing else."""
    knowing = knowing_the_clusters(lambda _: response(404))
    return lambda request: response(404) if request.host in hosts else knowing(request)


async def test_a_404_counts_only_from_a_broker_that_knows_anything() -> None:
    topic = "persistent://public/default/t"
    with pytest.raises(TopicMissing):
        await admin("http://one", strange_is(set())).topics.partitions(topic)
    client = admin("http://one", strange_is({"one"}))
    for asked in (client.topics.partitions(topic), client.topics.is_partitioned(topic), client.cluster.clusters()):
        with pytest.raises(Unavailable, match="404"):
            await asked
    with pytest.raises(TopicMissing):
        await admin("http://one,http://two", strange_is({"one"})).topics.partitions(topic)


@pytest.mark.parametrize("status", [401, 403])
async def test_who_may_not_list_the_clusters_is_believed(status: int) -> None:
    """It is a broker that refuses."""
    client = admin("http://one", lambda request: response(status if request.url.endswith("/clusters") else 404))
    with pytest.raises(TopicMissing):
        await client.topics.partitions("persistent://public/default/t")


async def test_a_404_does_not_count_where_nothing_else_is_heard() -> None:
    def answer(request: Request) -> Response:
        if request.url.endswith("/clusters"):
            raise NoAnswer("silent")
        return response(404)

    with pytest.raises(Unavailable):
        await admin("http://one", answer).topics.is_partitioned("persistent://public/default/t")


@pytest.mark.parametrize(
    "clusters", [response(503), response(429), response(302), page("welcome"), response(200, {"no": "list"})]
)
async def test_a_404_does_not_count_where_no_clusters_are_listed(clusters: Response) -> None:
    client = admin("http://one", lambda request: clusters if request.url.endswith("/clusters") else response(404))
    with pytest.raises(Unavailable):
        await client.cluster.tenants()


async def test_calls_at_the_same_time_do_not_send_each_other_back_to_the_dead_broker() -> None:
    client = admin("http://one,http://two", first_is_dead([]))
    for _ in range(5):
        answers = await asyncio.gather(*(client.topics.partitions("persistent://public/default/t") for _ in range(4)))
        assert answers == [3] * 4


async def test_what_changes_something_is_not_sent_twice_once_it_may_have_been_heard() -> None:
    asked: list[str] = []

    def answer(request: Request) -> Response:
        asked.append(request.host)
        raise NoAnswer("no answer")

    client = admin("http://one,http://two", answer)
    with pytest.raises(Unavailable):
        await client.topics.create_topic("persistent://public/default/t", 3)
    assert asked == ["one"]
    with pytest.raises(Unavailable):
        await client.cluster.clusters()
    assert asked == ["one", "one", "two"]


async def test_a_redirect_keeps_method_and_body() -> None:
    seen: list[tuple[str, str, bytes | None]] = []

    def answer(request: Request) -> Response:
        seen.append((request.host, request.method, request.body))
        if request.host == "one":
            return response(307, location=request.url.replace("one", "two"))
        return response(204)

    await admin("http://one", answer).topics.create_topic("persistent://public/default/t", 3)
    assert seen == [("one", "PUT", b"3"), ("two", "PUT", b"3")]


TOPIC = "persistent://public/default/t-partition-0"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, TopicMissing),
        (401, NotPermitted),
        (403, NotPermitted),
        (409, AlreadyExists),
        (429, Unavailable),
        (503, Unavailable),
        (408, Unavailable),
        (412, Refused),
    ],
)
async def test_statuses_are_errors_by_what_can_be_done_about_them(status: int, kind: type[PulsarError]) -> None:
    client = admin("http://one", knowing_the_clusters(lambda _: response(status, {"reason": "because"})))
    with pytest.raises(kind, match="because"):
        await client.topics.partitions("persistent://public/default/t")


@pytest.mark.parametrize(
    "reason",
    [
        f"Can't find owner for topic {TOPIC}",
        f"Failed to find ownership for topic:{TOPIC}",
        "Failed to find ownership for ServiceUnit:b",
    ],
)
async def test_a_topic_that_moves_is_asked_for_again(reason: str) -> None:
    """412 is final elsewhere. Here it told producers that Pulsar's policies refuse what they write."""
    client = admin("http://one", lambda _: response(412, {"reason": reason}))
    with pytest.raises(Unavailable, match="owner"):
        await client.topics.log_stats(TOPIC)


QUESTIONS: list[Callable[[PulsarAdmin], Awaitable[Any]]] = [
    lambda admin: admin.topics.partitioned_topics("public/default"),
    lambda admin: admin.topics.partitions(TOPIC),
    lambda admin: admin.topics.created_at(TOPIC),
    lambda admin: admin.topics.log_stats(TOPIC),
    lambda admin: admin.topics.find_index(TOPIC, 3),
    lambda admin: admin.topics.find_time(TOPIC, 3),
    lambda admin: admin.topics.partition_stats(TOPIC),
    lambda admin: admin.topics.compacted_ledger(TOPIC),
    lambda admin: admin.topics.compaction_stats(TOPIC),
    lambda admin: admin.subscriptions.acknowledged(TOPIC, "s"),
    lambda admin: admin.cluster.clusters(),
    lambda admin: admin.cluster.broker_settings(),
    lambda admin: admin.cluster.tenants(),
    lambda admin: admin.cluster.namespace_policies("public/default"),
]


@pytest.mark.parametrize("question", range(len(QUESTIONS)))
@pytest.mark.parametrize(
    "odd",
    [
        page("<html><head>x</head><body>Please log in</body></html>"),
        page("<html>Please log in</html>", ""),
        response(200),
        response(200, 7),
        response(302),
    ],
    ids=["page", "untyped page", "nothing", "number", "redirect to nowhere"],
)
async def test_an_odd_answer_is_that_of_a_broker_that_is_away(question: int, odd: Response) -> None:
    with pytest.raises(Unavailable, match="GET"):
        await QUESTIONS[question](admin("http://one", lambda _: odd))


async def test_a_page_is_no_sign_that_something_was_changed() -> None:
    client = admin("http://one", lambda _: page("<html><body>Please log in</body></html>"))
    with pytest.raises(Unavailable, match="Please log in"):
        await client.topics.create_topic("persistent://public/default/t", 3)


async def test_redirects_in_a_circle_end() -> None:
    client = admin("http://one", lambda request: response(307, location=request.url))
    with pytest.raises(Unavailable, match="redirected"):
        await client.cluster.clusters()


@pytest.mark.parametrize("name", ["", ".", "..", "%2e%2e", "a%2Fb", "__compaction", "pulsar.dedup", "pulsar.repl.eu"])
def test_what_does_not_reach_a_subscription_is_refused_before_it_reaches_something_else(name: str) -> None:
    assert not names_a_subscription(name)
    with pytest.raises(Refused):
        _subscription("persistent://public/default/t-partition-0", name)


@pytest.mark.parametrize("name", ["orders", "a/b", "../x", "with space", "ünï", "a.b"])
def test_other_names_are_one_part_of_the_path(name: str) -> None:
    path = _subscription("persistent://public/default/t-partition-0", name)
    path.encode("ascii")
    assert urlsplit("http://broker:8080" + path).path == path
    assert path.startswith("/admin/v2/persistent/public/default/t-partition-0/subscription/")
    assert path.count("/") == 8


@pytest.mark.parametrize(
    ("status", "reason"),
    [(415, "HTTP 415 Unsupported Media Type"), (400, "Cannot deserialize value of type `int` from Object value")],
)
async def test_a_broker_that_keeps_no_properties_of_topics_is_named(status: int, reason: str) -> None:
    client = admin("http://one", lambda _: response(status, {"reason": reason}))
    with pytest.raises(Refused, match=r"it must be 2\.10 or later"):
        await client.topics.create_topic("persistent://public/default/t", 1, {"a": "b"})


@pytest.mark.parametrize("status", [404, 405])
async def test_a_broker_that_can_not_change_properties_is_named(status: int) -> None:
    client = admin("http://one", knowing_the_clusters(lambda _: response(status, {"reason": "no"})))
    for call in (
        client.topics.set_properties("persistent://public/default/t", {"a": "b"}),
        client.topics.remove_property("persistent://a/b/t", "a"),
    ):
        with pytest.raises(Refused, match=r"it must be 3\.0 or later"):
            await call


@pytest.mark.parametrize(
    ("ledgers", "open_entries", "known", "empty"),
    [
        ([(5, 100), (7, 0)], 3, [(5, 100), (7, 3)], None),
        ([(7, 0), (5, 100)], 0, [(5, 100)], 7),
        ([(5, 100)], 0, [(5, 100)], None),  # of a terminated topic that was loaded again none is open
        ([], 0, [], None),
    ],
)
async def test_the_ledgers_of_a_topic_are_told_with_what_is_in_them(
    ledgers: list[tuple[int, int]], open_entries: int, known: list[tuple[int, int]], empty: int | None
) -> None:
    listed = [{"ledgerId": ledger, "entries": entries, "size": 10 * entries} for ledger, entries in ledgers]
    stats = {"ledgers": listed, "currentLedgerEntries": open_entries, "currentLedgerSize": 10 * open_entries}
    found = await admin("http://one", lambda _: response(200, stats)).topics.log_stats(
        "persistent://public/default/t-partition-0"
    )
    assert [(ledger.ledger, ledger.entries) for ledger in found.ledgers] == known
    assert found.empty_ledger == empty


@pytest.mark.parametrize(
    "gone",
    [
        response(404, {"reason": "Message id not found"}),
        response(
            500,
            {"reason": "Message: Message not found, the ledgerId does not belong to this topic or has been deleted"},
        ),
    ],
    ids=["since 3.0", "before"],
)
async def test_an_entry_that_retention_has_taken_is_no_missing_topic(gone: Response) -> None:
    made = admin("http://one", knowing_the_clusters(lambda _: gone))
    assert await made.topics.index_of("persistent://public/default/t-partition-0", Position(1, 0)) is None
    with pytest.raises(Unavailable, match="was removed"):
        await made.topics.is_marker("persistent://public/default/t-partition-0", Position(1, 0))


async def test_an_entry_of_a_topic_that_is_missing_is_not_just_gone() -> None:
    made = admin("http://one", knowing_the_clusters(lambda _: response(404, {"reason": "Topic not found"})))
    with pytest.raises(TopicMissing):
        await made.topics.index_of("persistent://public/default/t-partition-0", Position(1, 0))
