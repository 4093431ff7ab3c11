"""Transactions: Kafka's coordinator, with its log in a Pulsar topic and Pulsar's election (see `coordination`).

metadata    one transactional id, as the log has it    records      Kafka's records of `__transaction_state`
machine     what requests make of it, pure             shard        those of one partition of the topic, while we lead
            it
coordinator what clients ask                           markers      what ends a transaction in the logs of its
                                                       partitions
service     all of it together, for `coordination.runtime`
"""
