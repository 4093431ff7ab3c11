"""The running program.

sidecar             builds all parts, starts them, drains and stops them
surroundings        what a sidecar gets from outside: Pulsar, time, chance, other sidecars
workers             `serve --workers N`
marker_logs         the logs that the transaction coordinator writes markers to
pulsar_watch        asks whether Pulsar answers
replication_watch   asks which topics are replicated
"""
