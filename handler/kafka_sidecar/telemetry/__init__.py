"""Logs and metrics, for operators.

metrics     all metrics                      latencies, totals   histograms and counters that cost little
logs        one line an event, text or JSON, written by a thread of its own
limits      log lines that a flood does not repeat
log_levels  levels that operators change while the program runs
loop_lag    how late the event loop is
"""
