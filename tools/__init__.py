"""What developers run by make.

messages  writes Kafka's message types
docs      writes the pages that are made from the code
tidy      counts what is untidy
"""
