"""Topics: their names on both sides, their ids, and what exists."""
