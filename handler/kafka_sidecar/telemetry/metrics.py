"""Every metric, in one place."""

from __future__ import annotations

from prometheus_client import REGISTRY, Counter, Gauge

from kafka_sidecar.telemetry.latencies import Latencies
from kafka_sidecar.telemetry.totals import Total

REQUEST_SECONDS = Latencies(
    "kafka_sidecar_request_seconds",
    "From a request's last byte to its answer, by API.",
    "api",
    bounds=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
REGISTRY.register(REQUEST_SECONDS)
CONNECTIONS = Gauge("kafka_sidecar_connections", "Kafka connections open now.")
REFUSED = Counter("kafka_sidecar_refused_total", "Connections closed for what they sent, by cause.", ["cause"])
REQUEST_BYTES = Gauge("kafka_sidecar_request_bytes", "Bytes of requests that have no answer yet.")
PRODUCED_BYTES = Total("kafka_sidecar_produced_bytes", "Bytes of record batches appended.")
FETCHED_BYTES = Total("kafka_sidecar_fetched_bytes", "Bytes of record batches fetched.")
REGISTRY.register(PRODUCED_BYTES)
REGISTRY.register(FETCHED_BYTES)
PARTITIONS = Gauge("kafka_sidecar_partitions", "Partitions open now.")
WAITING_PARTITIONS = Gauge(
    "kafka_sidecar_waiting_partitions",
    "Partitions where producers wait: what they wrote before is not known yet, or can't be stored.",
)
PULSAR_REACHED = Gauge(
    "kafka_sidecar_pulsar_reached",
    "Whether Pulsar has answered when it was asked last, 1 or 0: each quarter of a minute.",
)
FLEET_MEMBERS = Gauge("kafka_sidecar_fleet_members", "Sidecars that lead partitions, as this one sees it.")
REDIRECTED = Counter(
    "kafka_sidecar_redirected_total", "Requests about a partition that were refused because another sidecar leads it."
)
CACHE_BYTES = Gauge("kafka_sidecar_cache_bytes", "Bytes in the fetch cache.")
PRODUCER_STATE_BYTES = Gauge(
    "kafka_sidecar_producer_state_bytes", "Bytes of what is known of producers, see limits.producer_state_bytes."
)
TRANSACTION_BYTES = Gauge(
    "kafka_sidecar_transaction_bytes", "Bytes of what is known of aborted transactions. The cache has so much less."
)
READ_AHEAD_BYTES = Gauge(
    "kafka_sidecar_read_ahead_bytes", "Bytes that readers of old data have read ahead of their consumers."
)
ANSWER_BYTES = Gauge("kafka_sidecar_answer_bytes", "Bytes of fetch answers that clients have not taken yet.")
STALLED = Counter(
    "kafka_sidecar_stalled_total", "Connections closed because they held bytes and did not move, while others waited."
)
GROUPS = Gauge("kafka_sidecar_groups", "Consumer groups coordinated here.")
GROUP_SHARDS = Gauge("kafka_sidecar_group_shards", "Partitions of __consumer_offsets that this sidecar leads.")
INTERNAL_TOPIC_BYTES = Gauge(
    "kafka_sidecar_internal_topic_bytes",
    "Bytes that Pulsar stores of an internal topic, says the sidecar that looks after it.",
    ["topic"],
)
COMMITTED_OFFSETS = Gauge("kafka_sidecar_committed_offsets", "Committed offsets of the groups coordinated here.")
REBALANCES = Counter("kafka_sidecar_rebalances_total", "Rebalances that came to their end.")
COMMITS = Counter("kafka_sidecar_commits_total", "Offsets committed.")
TRANSACTIONAL_IDS = Gauge("kafka_sidecar_transactional_ids", "Transactional ids coordinated here.")
OPEN_TRANSACTIONS = Gauge("kafka_sidecar_open_transactions", "Of these, with a transaction that has not ended.")
TRANSACTIONS = Counter(
    "kafka_sidecar_transactions_total", "Transactions that have ended, with all their markers.", ["result"]
)
TRANSACTIONS_LEFT_OPEN = Gauge(
    "kafka_sidecar_transactions_left_open",
    "Transactions in partitions in use here that have no marker, though their producers have gone on. Each holds back "
    "consumers of read_committed until kafka-transactions.sh abort ends it.",
)
TERMS_LOST = Counter(
    "kafka_sidecar_group_terms_lost_total",
    "Times a partition of __consumer_offsets (or __transaction_state) was lost while led.",
)
MIRROR_BEHIND = Gauge(
    "kafka_sidecar_mirror_behind", "Mirrored subscriptions that could not be moved to where their group has committed."
)
FORWARDED = Counter("kafka_sidecar_forwarded_total", "Requests passed on to other sidecars, by outcome.", ["outcome"])
INTERNAL_ERRORS = Counter(
    "kafka_sidecar_internal_errors_total",
    "Errors of the sidecar itself that it has survived, by where they happened.",
    ["where"],
)
LOOP_LAG = Gauge("kafka_sidecar_loop_lag_seconds", "How late the event loop was at worst in the last minute.")
INDEX_ALARMS = Counter(
    "kafka_sidecar_index_alarms_total", "Times a log contradicted itself. Any is a reason to call someone."
)
PRODUCERS_NOT_RESTORED = Counter(
    "kafka_sidecar_producers_not_restored_total",
    "How often the stored state of a partition's producers was damaged or of another log, so that the log was read.",
)
READ_FURTHER_BACK = Counter(
    "kafka_sidecar_read_further_back_total",
    "How often more of a log was read to decide whether a producer's batch was a retry.",
)
TORN_KEPT_STATES = Counter(
    "kafka_sidecar_torn_kept_states_total", "How often parts of a stored value were missing, so that the log was read."
)
REPLICATED_WITHOUT_COUNT = Gauge(
    "kafka_sidecar_replicated_without_count",
    "Partitions in use that Pulsar copies to another cluster, where their batches of several records can't be read.",
)
SILENT_READERS = Counter(
    "kafka_sidecar_silent_readers_total",
    "Readers that were opened again because they brought nothing of what the broker has.",
)
UNREADABLE_ENTRIES = Counter("kafka_sidecar_unreadable_entries_total", "Entries that could not be read.")
