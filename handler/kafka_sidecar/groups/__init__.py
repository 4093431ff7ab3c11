"""Consumer groups: Kafka's coordinator, with its log in a Pulsar topic and Pulsar's election (see `coordination`).

records/    Kafka's records of `__consumer_offsets`    legacy     what Kafka-on-Pulsar wrote there
classic/    the classic protocol, pure                 consumer/  the consumer protocol (KIP-848), pure
vocabulary  what machines and shards have in common    deadlines  what is due when
expiry      offsets that outlived their group          restored   groups made of their records
conversion  which kind a joining member finds          topics_image  what is known of the topics groups consume
awaiting_topics  requests that wait until that is known
shard       groups and offsets of one partition of the topic, while we lead it
coordinator what clients ask                           consumer_group_requests  those of its members
effects     what groups have decided, carried out      service    all of it together, for `coordination.runtime`
"""
