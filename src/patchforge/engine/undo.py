"""How to get the pristine bytes of a file back: the plan's edits, turned round."""

from __future__ import annotations

from patchforge.engine.model import Plan, Step
from patchforge.tree.record import Edit
from patchforge.tree.state import Undo


def undo_of(path: str, pristine: bytes | None, plan: Plan) -> Undo:
    """The undo of ``path``: edits where the series only modified it, its whole content where it was removed or replaced."""
    if pristine is None:
        return Undo()
    steps = [step for result in plan.results for step in result.steps if path in (step.path, step.source)]
    if any(not _modifies(step, path) for step in steps):
        return Undo(content=pristine)
    edits: list[Edit] = []
    for step in steps:
        shift = 0
        for index, old, new in step.edits:
            edits.append((index + shift, len(new), old))
            shift += len(new) - len(old)
    edits.reverse()
    return Undo(tuple(edits))


def _modifies(step: Step, path: str) -> bool:
    return step.path == path and step.source == path and step.before is not None and step.after is not None
