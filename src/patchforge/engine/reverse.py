"""Turning a series round on a tree: how much of it stands there, and what was there before it?"""

from __future__ import annotations

from patchforge.diff import Patch
from patchforge.engine.files import current_files
from patchforge.engine.model import Entry, FileState, Plan
from patchforge.engine.place import Options
from patchforge.engine.plan import plan_series
from patchforge.series.parsed import parse_file
from patchforge.series.project import Series
from patchforge.tree.target import Target


def reversed_patch(patch: Patch) -> Patch:
    """``patch`` turned round: sections last to first."""
    files = tuple(change.reversed() for change in reversed(patch.files))
    return Patch(patch.name, patch.label, patch.text, patch.diff_line, files)


def parsed(series: Series) -> list[Patch]:
    """The patches of ``series``.  Raises :class:`InputError` for one that cannot be read."""
    return [parse_file(file) for file in series.patches]


def plan_reverse(patches: list[Patch], target: Target) -> Plan:
    """The plan that takes ``patches`` off the tree, from the last."""
    back = (Entry(reversed_patch(patch)) for patch in reversed(patches))
    names = [patch.name for patch in reversed(patches)]
    return plan_series(back, current_files(target), Options(prove_scope=False), names)


def plan_forward(patches: list[Patch], target: Target, exact: bool = False) -> Plan:
    """The plan that applies ``patches`` to the tree as it is."""
    return plan_series(
        (Entry(patch) for patch in patches), current_files(target), Options(exact=exact), [p.name for p in patches]
    )


def forward_agrees(patches: list[Patch], target: Target, back: Plan) -> bool:
    """True when applying ``patches`` to what ``back`` leads to gives exactly the bytes of the tree."""

    def read(path: str) -> FileState | None:
        if path in back.after:
            return back.after[path]
        found = target.read(path)
        return None if found is None else FileState.of(found.data, found.executable)

    again = plan_series((Entry(patch) for patch in patches), read, Options(), [p.name for p in patches])
    if again.failure is not None:
        return False
    for path, state in again.after.items():
        found = target.read(path)
        if (found.data if found else None) != (state.data if state else None):
            return False
    return True


def stands(patches: list[Patch], target: Target) -> Plan | None:
    """The plan that takes ``patches`` off, when the tree is exactly what applying them gives: they come off, and go on again
    to the same bytes."""
    back = plan_reverse(patches, target)
    return back if back.failure is None and forward_agrees(patches, target, back) else None


def standing(patches: list[Patch], target: Target) -> tuple[int, Plan] | None:
    """How many patches from the first stand in the tree, the most that do, and the plan that takes them off; ``None``: not one.

    Quick: where a patch does not stand, turning it round fails at once.
    """
    for count in range(len(patches), 0, -1):
        back = stands(patches[:count], target)
        if back is not None:
            return count, back
    return None
