"""What Pulsar's replicator makes of a topic in another cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from kafka_sidecar.pulsar.pulsar_api_pb2 import KeyValue, MessageMetadata
from tests.contract.case import Case, World, given, indexes, scribe


class Clusters(Protocol):
    """A topic that two clusters have. What is written here is copied there."""

    source: str  # the name of the cluster here
    names_entries: bool  # copies say which entry they were, as those of brokers with apache/pulsar#23697 do

    @property
    def here(self) -> World: ...

    @property
    def there(self) -> World: ...

    async def replicate(self) -> None:
        """The replicator goes on to the end."""
        ...


COPIES: Final[list[Case[Clusters]]] = []

ENTRY_PROPERTY: Final = b"__MSG_PROP_REPL_SOURCE_POSITION"
PROPERTIES: Final = MessageMetadata(properties=[KeyValue(key=b"k", value=b"v")]).SerializePartialToString()


def copied(source: str) -> Callable[[Callable[[Clusters], Awaitable[None]]], Callable[[Clusters], Awaitable[None]]]:
    def add(play: Callable[[Clusters], Awaitable[None]]) -> Callable[[Clusters], Awaitable[None]]:
        COPIES.append(Case(source, play))
        return play

    return add


@copied("PersistentReplicator.readEntriesComplete: MessageImpl.deserializeSkipBrokerEntryMetaData, setReplicatedFrom")
async def a_copy_is_the_entry_and_says_where_it_comes_from(clusters: Clusters) -> None:
    writer = await scribe(clusters.here, "named")
    writer.writer.send(7, 1, PROPERTIES, b"payload", None)
    await writer.receipt(7)
    await clusters.replicate()
    (original,), (copy,) = await given(clusters.here, 1), await given(clusters.there, 1)
    told, written = copy.message_metadata, original.message_metadata
    assert bytes(copy.payload) == b"payload"
    assert (told.producer_name, told.sequence_id) == (written.producer_name, 7)
    assert [(one.key, one.value) for one in told.properties][:1] == [(b"k", b"v")]
    assert (told.replicated_from, written.replicated_from) == (clusters.source.encode(), b"")


@copied("GeoPersistentReplicator.replicateEntries: MSG_PROP_REPL_SOURCE_POSITION")
async def a_copy_may_name_the_entry_that_it_was(clusters: Clusters) -> None:
    position = await (await scribe(clusters.here)).write()
    await clusters.replicate()
    (copy,) = await given(clusters.there, 1)
    found = {one.key: one.value for one in copy.message_metadata.properties}
    assert found == ({ENTRY_PROPERTY: b"%d:%d" % position[:2]} if clusters.names_entries else {})


@copied("ProducerImpl.serializeAndSendMessage: getNumMessagesInBatch")
async def a_copy_takes_as_many_indexes_as_its_field_says(clusters: Clusters) -> None:
    writer = await scribe(clusters.here)
    for count in (1, 3, 2):
        await writer.write(count=count)
    await clusters.replicate()
    assert await indexes(clusters.there, 3) == await indexes(clusters.here, 3) == [0, 3, 5]


@copied("ProducerImpl.serializeAndSendMessage: getNumMessagesInBatch")
async def a_copy_without_the_field_takes_one_index(clusters: Clusters) -> None:
    writer = await scribe(clusters.here)
    for sequence, count in enumerate((1, 3, 2)):
        writer.writer.send(sequence, count, b"", b"x", None)
        await writer.receipt(sequence)
    await clusters.replicate()
    assert await indexes(clusters.here, 3) == [0, 3, 5]
    assert await indexes(clusters.there, 3) == [0, 1, 2]


@copied("PersistentReplicator.readEntriesComplete")
async def copies_come_in_order_and_behind_what_is_there(clusters: Clusters) -> None:
    await (await scribe(clusters.there, "native")).write(b"there")
    written = [b"%d" % number for number in range(45)]
    writer = await scribe(clusters.here)
    await writer.write_all(written)
    await clusters.replicate()
    entries = await given(clusters.there, 46)
    assert [bytes(one.payload) for one in entries if one.message_metadata.replicated_from] == written
    assert [one.last_index for one in entries] == list(range(46))


@copied("PersistentReplicator.readEntriesComplete: isReplicated")
async def a_copy_is_not_copied_back(clusters: Clusters) -> None:
    await (await scribe(clusters.here)).write(b"here")
    await clusters.replicate()
    await given(clusters.there, 1)
    await (await scribe(clusters.there, "native")).write(b"there")
    await clusters.replicate()
    assert [bytes(one.payload) for one in await given(clusters.there, 2)] == [b"here", b"there"]
    assert [bytes(one.payload) for one in await given(clusters.here, 2)] == [b"here", b"there"]
