"""Coordinators of several sidecars, in virtual time: elections, terms, and topics that all follow, over a modelled Pulsar.

    clients ──▶ Fleet: FleetMember ── CoordinatorRuntime, Term, FollowedTopic (the product's) ──▶ tests.model.cluster
                   ▲                                                                                 │
    faults ────────┘                                     checks: each log, not compacted ◀───────────┘

A shard's state is a map of registers here: what groups and transactions make of a term comes on top of that.
"""
