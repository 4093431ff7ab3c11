"""Kafka clusters as the pipelines' tasks talk to them: the sidecar's own messages over aiokafka's connections, with their TLS and SASL.

cluster          how a cluster is reached; goes to the tasks with their work
client           a connection to all its brokers: any request, leaders, coordinators
topics           what the driver asks of topics, and makes
copied_batches   the record batches of a Fetch answer, as they are produced again
reading          Fetch, and the records of a partition in order
"""
