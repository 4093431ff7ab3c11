"""Bytes to values and back. Nothing here does I/O or looks at a clock.

framing, headers   frames, and the headers of requests and answers
buffers, primitives, varint   primitive types, read within bounds
message, messages/   Kafka's messages; `make messages` writes them and error_code from Kafka's schemas
produce_frame      Produce requests of the ordinary shape, without an object for each part
records            record batches of magic 2, by their headers
control_records    what ends a transaction in a partition's log (KIP-98)
compression, crc   compressions within a bound; CRC-32C
"""
