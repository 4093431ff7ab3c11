"""Pulsar, as far as one topic goes. Unit tests and the simulation share it.

What a topic does is here: ledgers, the index, what is being stored, deduplication, who is connected, what readers are
given. How the network and the broker behave is decided by a `Conduct`: a test scripts it (tests/support/memory_log.py),
a seed draws it (tests/simulation/conduct.py).
"""
