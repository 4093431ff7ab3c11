"""Consumer groups: Kafka's coordinator, with its log in a Pulsar topic and Pulsar's election (see `coordination`).

coordinator   what clients ask                          consumer_group_requests   requests of KIP-848
service       puts it together for `coordination.runtime`
shard         groups and offsets of one partition of the topic, while this sidecar leads it
effects       carries out what groups have decided      vocabulary   words that machines and shards share
classic/      the classic protocol (pure)               consumer/    the protocol of KIP-848 (pure)
conversion    which protocol a group speaks when a member joins
restored      groups made of their records              records/     Kafka's records of `__consumer_offsets`
legacy        what Kafka-on-Pulsar wrote there
pending_offsets  offsets of transactions that have not ended (pure)
expiry        offsets that outlive their group          deletion     deletes groups and offsets
deadlines     which deadline is next
topics_image  what is known of the topics that groups consume
awaiting_topics  requests that wait until that is known
"""
