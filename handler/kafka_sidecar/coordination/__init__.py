"""An elected term over an internal topic: which sidecar leads a shard, and the log that only this leader writes.

It knows neither groups nor what their records mean: they bring a topic, a codec, and a state that replays records.

term          a shard's phases: waiting, loading, leading
term_log      one shard's log, for one term
election      one candidate for one shard, as a consumer of a Failover subscription
candidate     what a candidate says of itself, as the metadata of that consumer
directory     reads from topic stats which sidecar leads which shard
leaders       finds the coordinator of a key
balance       decides which sidecar is to lead which shard, and which shard moves when (pure)
rendezvous    spreads parts over members: rendezvous hashing with bounded loads (pure)
shards        the shards of this process
runtime       runs the topic, the candidates and the timers
codec         what a user's records are to the log
timers        timers by key, as Kafka's CoordinatorTimer
home          the namespace whose topics have short names in a shard's records
named_topics  translates short names in a log that no sidecar of 0.3.0 has led yet
housekeeping  elects one sidecar for each internal topic, which lets Pulsar delete what is compacted
errors        the error that a request gets when there is no coordinator
"""
