"""What several APIs share.

topics, nodes, configs, acls, features, loggers   the resources of Kafka that requests name
ordinary_produce   the short way of a Produce request
late               answers requests that take too long
handover           opens partitions on their next leader
deleted_topics     lets every sidecar forget a topic that a client has deleted
"""
