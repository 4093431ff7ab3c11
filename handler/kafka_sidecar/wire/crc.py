"""CRC-32C, the checksum of Kafka's record batches and of Pulsar's entries.

`crc32c(data, initial)`: of any contiguous buffer, without a copy. `initial` is the checksum of what stands before the
data.
"""

from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]
