"""Keeps committed offsets of groups and Pulsar's subscriptions of the same name together.

mirror   moves subscriptions after commits
"""
