"""patchforge: a strict patch series against a pinned, installed Python distribution."""

__version__ = "0.1.0"
