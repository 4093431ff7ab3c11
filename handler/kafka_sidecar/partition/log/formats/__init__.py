"""How the records of Kafka's producers are stored. A topic says in which format its entries are written (`entry.format`); in which one
an entry was written, the entry says itself. So both may follow each other in one log.
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
