"""The running program.

run                  one sidecar as a process: signals, the metrics port, the end
workers              `serve --workers N`: several of them
sidecar              builds all parts, starts them, hands over and drains
parts                their order
surroundings         what a sidecar gets from outside: Pulsar, time, chance, other sidecars
waiting_for_pulsar   it starts when Pulsar is there and set as it must be
peer_requests        requests that other sidecars pass on
marker_logs          the logs that the transaction coordinator writes markers to
pulsar_watch         asks whether Pulsar answers
replication_watch    asks which topics are replicated
"""
