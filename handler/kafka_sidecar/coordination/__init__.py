"""An elected term over an internal topic: who leads a shard of it, the log that only the leader writes, where leaders are.

It knows neither groups nor what their records mean: they bring a topic, a codec, and a state that replays records.

term        loading, leading, writing; what it is about is told what is replayed, stored and over
election    one candidate for one shard     balance    who is to lead which, and who moves when
directory   who leads what, from stats      term_log   one shard's log, for one term
codec       what a user's records are to the log       timers  by key, Kafka's CoordinatorTimer
shards      the shards in this process                 leaders where the coordinator of a key is
runtime     all of it together: the topic, the candidates, the seconds

Beside it are the topics that nobody leads, and what all internal topics store.

followed_topic    facts that any sidecar writes and all read      kept_states   what was worked out of logs, by key
housekeeping      one sidecar for each internal topic lets Pulsar take what is compacted
compactor         has partitions compacted                        internal_storage   when, and how much may go. Pure
"""
