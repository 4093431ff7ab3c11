"""Topics read in parallel and proved: every offset accounted for, times, sizes, keys; and two copies compared record by
record.

measure   what is found out, as DataFrames
causes    why offsets have no record, as verify tells it
report    a page with plots that needs nothing else
audit     the driver
command   `kafka-sidecar pipeline audit`
"""
