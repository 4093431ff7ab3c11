"""Faults at the edges. Each test failed when it was written."""
