"""A partition's state, made of the entries of its log in their order. No I/O, no clock.

fold             entries in, offsets and verdicts out
producers        idempotence by Kafka's rules (KIP-98, KIP-360)
producer_state, producer_states   one producer's state, and those of all
packed_states, columns            states of silent producers, in some forty bytes each
transactions     open and aborted transactions
left_open        transactions without a marker
log_times        which entry was stored when, by the broker's clock: producers expire by it
recent_ends      where the last entries ended, to compare receipts with the log
snapshot, known_producers, extent a fold's and its producers' snapshot, and the part of the log that a snapshot covers
"""
