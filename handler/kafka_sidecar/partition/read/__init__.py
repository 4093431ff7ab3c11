"""Readers of the log, what they have brought, and both of its ends."""
