"""What runs in the event loop, for all rooms: time, ids, tasks.

clock          the times that a process knows; passed down, so that a test sets them
ids            names that nobody else has
states         states with a table of the ways between them
supervised     tasks that are restarted after a failure
backoff        pauses between attempts, which grow
single_flight  calls that several callers share
keyed_lock     a lock for each key
gate           a gate that many wait at, who go on a few at a time
waiting        waiting for several things, or for a limited time
pace           long work that lets other work run
lasting        what is believed once it has lasted: a broker that has just started may say what is not so
byte_rate      a limit of bytes a second
awake          detects that the process stood still
turn_writer    one system call for all writes of a turn of the loop
"""
