"""What all rooms speak of: values without I/O.

sidecar  a sidecar, and where it is reached
"""
