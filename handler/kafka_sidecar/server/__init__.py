"""The Kafka server: sockets, framing, order of answers, budgets, draining."""
