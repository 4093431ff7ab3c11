"""`kafka-sidecar try`: a record, written through running sidecars and read back.

command   its options
try_out   writes and reads it, as any client would
"""
