"""Appends, from their request to their verdict.

append            one batch on its way
appender          takes appends, and gives each its verdict from the fold
sender            sends entries through one Pulsar producer, and sends them again after an error
in_flight         batches that were sent, and those that wait to share an entry (pure)
precheck          the verdict before a batch is sent (pure)
held_appends      appends that wait until the end of the log is known
verified_appends  appends of transactions that wait for their coordinator (KIP-890)
validation, log_validator   batches whose records are checked, by Kafka's LogValidator
"""
