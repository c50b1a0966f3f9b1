"""Planning a series in memory: where every hunk lands, or why it does not.  Pure: files come through a reader."""

from patchforge.engine.model import Failure, FileState, Offset, PatchResult, Plan
from patchforge.engine.plan import plan_series

__all__ = ["Failure", "FileState", "Offset", "PatchResult", "Plan", "plan_series"]
