"""Turning a series round on a tree: has it been applied already, and what was there before it?"""

from __future__ import annotations

from patchforge.diff import Patch
from patchforge.engine.files import current_files
from patchforge.engine.model import Entry, FileState, Plan
from patchforge.engine.place import Options
from patchforge.engine.plan import plan_series
from patchforge.errors import InputError
from patchforge.series.parsed import parse_file
from patchforge.series.project import Series
from patchforge.tree.target import Target


def reversed_patch(patch: Patch) -> Patch:
    """``patch`` turned round: sections last to first.  Raises :class:`ValueError` for a patch that copies files."""
    files = tuple(change.reversed() for change in reversed(patch.files))
    return Patch(patch.name, patch.label, patch.text, patch.diff_line, files)


def plan_reverse(series: Series, target: Target) -> Plan | None:
    """The plan that takes ``series`` off the tree, from the top; ``None`` when it cannot be turned round."""
    try:
        patches = [reversed_patch(parse_file(file)) for file in reversed(series.patches)]
    except (InputError, ValueError):
        return None
    read = current_files(target)
    return plan_series((Entry(patch) for patch in patches), read, Options(prove_scope=False), [p.name for p in patches])


def forward_agrees(series: Series, target: Target, back: Plan) -> bool:
    """True when applying ``series`` to what ``back`` leads to gives exactly the bytes of the tree."""

    def read(path: str) -> FileState | None:
        if path in back.after:
            return back.after[path]
        found = target.read(path)
        return None if found is None else FileState.of(found.data, found.executable)

    patches = [parse_file(file) for file in series.patches]
    again = plan_series((Entry(patch) for patch in patches), read, Options(), [p.name for p in patches])
    if again.failure is not None:
        return False
    for path, state in again.after.items():
        found = target.read(path)
        if (found.data if found else None) != (state.data if state else None):
            return False
    return True


def already_applied(series: Series, target: Target) -> bool:
    """True when the tree is exactly what applying ``series`` gives: it comes off, and goes on again to the same bytes."""
    back = plan_reverse(series, target)
    return back is not None and back.failure is None and forward_agrees(series, target, back)
