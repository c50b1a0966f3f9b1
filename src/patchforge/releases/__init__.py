"""Releases of a distribution: found and fetched through pip, proved by their hash."""
