"""`kafka-sidecar verify`: a walk through the logs of topics that accounts for every index.

command   its options
verify    finds the topics, reads the logs, shows how far it is
audit     entry by entry: what is there, and what is wrong (pure)
report    the findings for people and for programs
"""
