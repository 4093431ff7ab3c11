"""What the model leaves open: how long things take, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Final, NamedTuple, Protocol

# In which Pulsar's own work is done: it belongs to no sidecar.
NOBODYS: Final = Context()


class Refusal(NamedTuple):
    """The broker's answer to a SEND that it does not take."""

    code: int
    saying: str
    ends_writer: bool  # the broker forgets the producer, which has to connect again


class Way(Protocol):
    """To the broker and back, of one producer or consumer. In each direction things arrive in the order in which they
    were sent.
    """

    @property
    def entries_at_once(self) -> int:
        """That the broker hands out before it pauses."""
        ...

    def up(self, arrive: Callable[[], None]) -> None: ...
    def send(self, arrive: Callable[[], None], payload: bytes | bytearray, stored: bytes) -> None:
        """The same for a SEND. `stored` is what `payload` held when it was sent."""
        ...

    def down(self, arrive: Callable[[], None]) -> None: ...
    def answer(self, tell: Callable[[], None]) -> None:
        """Of the broker, to a question: it does not wait for what is on its way down."""
        ...

    def end(self, tell: Callable[[], None]) -> None:
        """The client hears that the connection has ended."""
        ...

    def dispatch(self, hand_out: Callable[[], None]) -> None:
        """The broker takes its time until it hands out what there is."""
        ...

    def refusal(self) -> Refusal | None:
        """Of the SEND that lands now, if it is refused."""
        ...

    def loses_receipt(self) -> bool: ...
    def is_unknown_at_once(self) -> bool:
        """Of a producer whose connection has ended: whether the broker notices it before what is on its way lands."""
        ...

    def lands_though_unknown(self) -> bool:
        """What is on its way from a producer that the broker knows no more. A real one drops it
        (ServerCnx.handleSend).
        """
        ...


class Caller(Protocol):
    """A sidecar, as who opens connections and asks the admin API."""

    def way(self, name: str) -> Way: ...
    async def ask(self) -> None:
        """A question comes to the broker. May raise Unavailable."""
        ...

    async def hear(self) -> None:
        """Its answer comes back."""
        ...


class Conduct(Protocol):
    """Of the broker."""

    def now_ms(self) -> int: ...
    def store(self, stored: Callable[[], None]) -> None:
        """An entry is on its way to the bookies. They answer in order."""
        ...

    def recovered(self, count: int) -> int:
        """How many of the entries that are being added ledger recovery finds, from the first on."""
        ...

    def forgets_reader(self) -> bool:
        """Whether a reader that subscribes now stands at what is being closed (see
        `kafka_sidecar.partition.follow.tail_watch`).
        """
        ...
