"""What the entries of a log, in their order, make of a partition. No I/O, no clock."""
