"""CRC-32C, the checksum of Kafka's record batches and of Pulsar's entries.

`crc32c(data, before=0)`: of any buffer, without a copy; `before` is the checksum of what stands before it.
"""

from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]
