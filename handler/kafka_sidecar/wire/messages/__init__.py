"""Kafka's messages, one module an API, made by `make messages` (see `tools/messages.py`).

A message has the fields of all its versions. `read(version, body)` leaves those of other versions at their defaults, and
`write(version, out)` leaves them out. Times are integers that say `_ms`; an id of zeros is None.
"""
