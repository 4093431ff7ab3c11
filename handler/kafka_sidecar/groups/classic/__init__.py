"""The classic group protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup): members choose, one of them assigns.

members   requests, answers, members, effects     roster    the members by id, by instance, and their protocols
machine   the rebalance, SyncGroup                joining   JoinGroup
state     what a group is, and the ways between
window    how long a rebalance waits for members  group_record  the record of a group
"""
