"""Consumer groups: Kafka's coordinator, with its log in a Pulsar topic and Pulsar's election.

records     Kafka's records of `__consumer_offsets`    adopted    what Kafka-on-Pulsar wrote there
classic/    the classic protocol, pure                 machine    what a group's machine is to its shard
expiry      offsets that outlived their group
log         one partition of the topic, for a term     shard      its groups and offsets while we lead it
election    who leads a shard                          directory  who leads the others
coordinator what clients ask                           service    all of it together
"""
