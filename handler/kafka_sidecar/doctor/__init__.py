"""What is wrong with a Pulsar cluster or with its topics.

cluster   the settings that a cluster must have; also checked at start
topics    every topic, and its readers
"""
