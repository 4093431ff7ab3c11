"""Sets committed offsets of a source's groups in the target of a mirror.

groups    finds and proves the offsets    command   `kafka-sidecar pipeline migrate-groups`
"""
