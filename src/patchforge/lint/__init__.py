"""Checks of a series that need no tree: what applies, and yet will hurt somebody."""
