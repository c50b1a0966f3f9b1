"""A tree on disk: finding it, reading it safely, changing it all at once or not at all."""
