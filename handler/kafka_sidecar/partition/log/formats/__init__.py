"""How the records of Kafka's producers are stored. A topic says in which format new entries are written
(`entry.format`). Each entry says in which format it was written, so both may follow each other in one log.

entry_format  what a format has to do
kafka         record batches as their producers sent them
pulsar        a record is a message of an ordinary Pulsar batch
chunk         a part of a large native message (PIP-37)
encrypted     a native message that only its own consumers can read
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.partition.log.formats.chunk import CHUNK
from kafka_sidecar.partition.log.formats.encrypted import ENCRYPTED
from kafka_sidecar.partition.log.formats.entry_format import EncodedEntry, EntryFormat, StoredFormat
from kafka_sidecar.partition.log.formats.kafka import KAFKA
from kafka_sidecar.partition.log.formats.pulsar import PULSAR

FORMATS: Final[dict[str, EntryFormat]] = {KAFKA.name: KAFKA, PULSAR.name: PULSAR}

__all__ = ["CHUNK", "ENCRYPTED", "FORMATS", "KAFKA", "PULSAR", "EncodedEntry", "EntryFormat", "StoredFormat"]
