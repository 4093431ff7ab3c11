"""The consumer group protocol (KIP-848): members say which topics they want, the coordinator assigns partitions.

machine       what each event changes            group_state   what is stored of a group, and what an event changed
members       what a member says and has         classic_members  members that still speak the classic protocol
subscriptions which topics members name or match
assignors     which member gets which partition  reconcile     a member's next step towards its assignment
owners        which member has which partition now
checks        rejects a bad request before anything changes
migration     from a classic group, and back to one
"""
