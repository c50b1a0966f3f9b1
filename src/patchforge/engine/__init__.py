"""Planning a series in memory, and changing a tree to what was planned, verifying and reverting it."""
