"""Requests for a coordinator: answered here, or by the sidecar that coordinates the group or transactional id.

to_coordinator  requests about one group or transactional id
fan_out         requests about many: each coordinator is asked, and the answers are put together
in_full         topic names in full, for a coordinator with another `kafka.namespace`
member_words    the same inside what members of classic groups send each other
transactions    asks which transaction a batch or an offset belongs to
"""
