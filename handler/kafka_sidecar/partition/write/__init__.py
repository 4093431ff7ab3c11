"""Appends on their way to the log, until each has its verdict."""
