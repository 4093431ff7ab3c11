"""Topics: their names on both sides, their ids, and which exist.

names          Kafka's names and Pulsar's
catalog        partition counts and ids of Pulsar's topics, cached for a short while
description    one topic, as Pulsar describes it
failed_looks   since when Pulsar fails to describe topics that this sidecar has never seen
id_search      which topic has an id
listing        the list of all topics, shared by all that ask
deletions      deletions that this sidecar has heard of
lost_topics    topics whose log Pulsar has lost, or can't load
configs, config_types   Kafka's topic configs, and what Pulsar has for them (pure)
config_store   reads topic configs in Pulsar, and writes what differs
record_configs configs that are properties of the Pulsar topic (pure)
retention      Kafka's two retention limits and Pulsar's policy (pure)
node_configs   Kafka's names for settings of a node (pure)
replication    which topics Pulsar copies to other clusters
skipped        entries that an operator has skipped (pure)
"""
