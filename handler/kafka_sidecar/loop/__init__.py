"""What runs in the event loop, for all rooms: time, ids, tasks.

clock        the times that a process knows; passed down, so that a test sets them
ids          names that nobody else has
tasks        tasks that are restarted, calls that are shared, pauses that grow
awake        detects that the process stood still
turn_writer  one system call for all writes of a turn of the loop
"""
