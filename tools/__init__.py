"""What developers run by make: `messages` writes Kafka's message types, `docs` the pages that are made from the code."""
