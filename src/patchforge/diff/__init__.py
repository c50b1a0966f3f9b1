"""Unified diffs as bytes: parsing, names, reversal.  Pure: no file is read, nothing is printed."""

from patchforge.diff.model import FileDiff, Hunk, Patch
from patchforge.diff.parser import parse_patch

__all__ = ["FileDiff", "Hunk", "Patch", "parse_patch"]
