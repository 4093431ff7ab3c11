"""A partition's state, made of the entries of its log in their order. No I/O, no clock."""
