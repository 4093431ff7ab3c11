"""Coordinators of several sidecars, in virtual time: elections, terms, transactions, and topics that all follow, over a
modelled Pulsar.

clients ──▶ Fleet: FleetMember ── CoordinatorRuntime, coordinators, SharedMap (the product's) ──▶ tests.model.cluster
               ▲                                                                                 │
faults ────────┘                                     checks: each log, not compacted ◀───────────┘

Clients are of five kinds: of registers, the least that a term can serve; of groups' offsets; of a followed topic's
facts; producers with transactions, over modelled partitions; and members of groups in both protocols.
"""
