"""Keeps a partition's fold at the end of its log, and finds out what the fold can't know.

tail_reader, tail_watch      the reader at the end of the log, and whether it still stands where the broker writes
tail_gap                     stops the tail before missing offsets until it is known what is missing
read_to_end, log_end         read up to the broker's last entry; ask the broker for that entry
read_entries                 reads entries from a place until a question is answered
replay                       learns what producers wrote before the fold began
entry_contents               decodes an entry, and asks for what it needs
late_transactions, unannounced_transactions   transactions that ended before their batches landed; that nobody has
                                              announced
producer_times               expires producers
alarms, failures             a log that contradicts itself; entries at which the sidecar itself failed
"""
