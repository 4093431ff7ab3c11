"""The Kafka server: sockets, framing, order of answers, budgets, draining.

listener    the listening sockets and their connections
connection  one client's connection; connection_state is what it does with requests
dispatch    from a frame to a handler
budget      the bytes of requests without an answer, for the whole process
round_trip  the network's round trip to a client, as the kernel measured it
"""
