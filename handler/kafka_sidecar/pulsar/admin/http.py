"""Calls of Pulsar's admin REST API. 307 is followed with method and body kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode, urljoin, urlsplit

from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.pulsar.admin.connections import JSON, HttpConnections, NoAnswer, NotConnected, Response
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable

T = TypeVar("T")

# Every broker knows this path: if it is missing too, the 404 did not come from a broker.
_CLUSTERS: Final = "/admin/v2/clusters"
# One redirect leads to the broker that owns the topic. More come while topics move.
MAX_REDIRECTS: Final = 5
# All Pulsar versions answer "Can't find owner for topic" or "Failed to find ownership for" while a topic moves to
# another broker.
_NO_OWNER: Final = re.compile(r"\bowner(ship)?\b")


class _NotReached(Unavailable):
    """Another broker may answer."""


class AlreadyExists(PulsarError):
    """The topic, namespace or subscription to be created is there."""


def path_of(topic: str) -> str:
    """`persistent://tenant/namespace/name` as the path that admin URLs have."""
    domain, _, rest = topic.partition("://")
    tenant, namespace, name = rest.split("/", 2)
    return f"/admin/v2/{domain}/{quote(tenant, safe='')}/{quote(namespace, safe='')}/{quote(name, safe='')}"


class AdminHttp:
    def __init__(self, url: str, max_connections: int = 16) -> None:
        self._urls = [one.rstrip("/") for one in url.split(",")]
        self._current = 0  # index of the admin URL that answered last
        self._connections = HttpConnections(max_connections)
        # Shared, because many topics may be missing at the same time.
        self._checks: SingleFlight[str, Response] = SingleFlight()

    def close(self) -> None:
        self._checks.stop()
        self._connections.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: dict[str, str] | None = None,
        content_type: str = JSON,
    ) -> Response:
        """One call to whichever broker answers, redirects followed; raises the exception that fits the status."""
        failure: Unavailable | None = None
        for base in (*self._urls[self._current :], *self._urls[: self._current]):
            try:
                response = await self._call_at(base, method, path, body, params, content_type)
            except _NotReached as error:
                failure = error
            else:
                self._current = self._urls.index(base)
                return response
        assert failure is not None
        raise failure

    async def _call_at(
        self, base: str, method: str, path: str, body: object, params: dict[str, str] | None, content_type: str
    ) -> Response:
        url = f"{base}{path}?{urlencode(params)}" if params else base + path
        encoded = None if body is None else json.dumps(body).encode()
        for _ in range(MAX_REDIRECTS):
            try:
                response = await self._connections.request(method, url, encoded, content_type)
            except (NotConnected, NoAnswer) as error:
                # A request that changes something is not repeated once a broker may have executed it.
                again = method == "GET" or isinstance(error, NotConnected)
                raise (_NotReached if again else Unavailable)(f"{method} {url}: {error}") from error
            except ValueError as error:
                raise Unavailable(f"{method} {url}: {error}") from error
            if response.status not in (302, 307):
                if response.status == 404:
                    await self._check_broker_behind(url, f"{method} {url}")
                return _checked(method, url, response)
            location = response.headers.get("location")
            if not location:
                raise Unavailable(f"{method} {url}: redirected to no address")
            url = urljoin(url, location)
        raise Unavailable(f"{method} {path} was redirected {MAX_REDIRECTS} times")

    async def _check_broker_behind(self, url: str, question: str) -> None:
        """Raises Unavailable if a 404 comes from no working broker. A broker that has just started may answer 404 to
        every question, and so may an ingress without brokers. Clients would drop existing topics then, and sidecars
        would forget what they have stored. A working broker lists its clusters, so that list is asked for behind each
        404.

        An ingress may send the second question to another broker. Then the list proves nothing of the first one.
        """
        clusters = urljoin(url, _CLUSTERS)
        try:
            answer = await self._checks.call(clusters, lambda: self._connections.request("GET", clusters))
            if answer.status == 200:
                texts(answer.json())
        except (NotConnected, NoAnswer, ValueError, TypeError) as error:
            raise _NotReached(
                f"{question}: 404, and then of {_CLUSTERS}: {str(error) or 'nothing that a broker says'}"
            ) from error
        if answer.status not in (200, 401, 403):  # 401 and 403 come from a broker too: this role may not list clusters
            raise _NotReached(f"{question}: 404, and {answer.status} to {_CLUSTERS}, which each broker knows")

    async def get(self, path: str, read: Callable[[Any], T], **params: str) -> T:
        """The answer as `read` understands it; Unavailable where no broker would answer so: a proxy's page, say."""
        response = await self.call("GET", path, params=params)
        try:
            return read(response.json())
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Unavailable(
                f"GET {path}: the answer is not that of a broker: {_reason(response) or type(error).__name__}"
            ) from error


def _checked(method: str, url: str, response: Response) -> Response:
    status = response.status
    if status < 300 and "html" in response.headers.get(
        "content-type", ""
    ):  # the page of a proxy; brokers answer with JSON or without a body
        raise Unavailable(f"{method} {urlsplit(url).path}: the answer is not that of a broker: {_reason(response)}")
    if status < 300:
        return response
    reason = _reason(response)
    text = f"{method} {urlsplit(url).path}: {status} {reason}"
    if status == 404:
        raise TopicMissing(text)
    if status in (401, 403):
        raise NotPermitted(text)
    if status == 409:
        raise AlreadyExists(text)
    if status >= 500 or status in (408, 429) or (status == 412 and _NO_OWNER.search(reason)):
        raise Unavailable(text)
    raise Refused(text)


def _reason(response: Response) -> str:
    try:
        return str(response.json()["reason"])
    except (ValueError, KeyError, TypeError):
        return " ".join(re.sub(r"(?s)<(style|head).*?</\1>|<[^>]*>", " ", response.text).split())[:200]


def texts(found: Any) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TypeError("not a list of names")
    return found


def mapping(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TypeError("not an object")
    return found
