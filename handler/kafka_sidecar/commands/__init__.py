"""The commands of `kafka-sidecar`, but for `serve`, `doctor` and `pipeline`.

ctl                asks a running sidecar
inspect            shows an entry, a fold, a group's records
verify/            accounts for every offset of a log
try_               writes a record and reads it back
transfer_groups    `groups import` and `groups export`
translate_groups   `groups translate`
committed          committed offsets, as a client reads and sets them
"""
