"""Whole sidecars in virtual time: real connections, handlers, coordinators, fleet and partitions over the model of
Pulsar.

    clients ──network──▶ Sidecar ──surroundings──▶ tests.model.cluster
                           └──peers──▶ other sidecars

`python -m tests.simulation.fleets.run SEED [COUNT]`
"""
