"""The classic group protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup): members choose, one of them assigns.

members   what a group hears and says        roster    who is in it
window    how long it waits for members      machine   what happens when
"""
