"""A series on disk: the pin, the order, the patches, the lock."""
