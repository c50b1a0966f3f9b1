"""Taking a series off again: the exact pristine bytes, modes and RECORD."""

from __future__ import annotations

from dataclasses import dataclass

from patchforge.diff import Patch
from patchforge.engine.model import PatchResult, same
from patchforge.engine.reverse import parsed, plan_forward, plan_reverse, standing
from patchforge.errors import Problem, TreeError
from patchforge.series.project import Series
from patchforge.tree import bytecode
from patchforge.tree.state import NAME
from patchforge.tree.target import Target
from patchforge.tree.transaction import Change, with_executable


@dataclass(frozen=True, slots=True)
class Reverted:
    """What a revert did.  ``outcome``: ``reverted``, ``pristine``, ``would-revert`` or ``failed``."""

    outcome: str
    results: tuple[PatchResult, ...]
    changed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    status: int = 0


def revert_installed(target: Target, dry_run: bool = False) -> Reverted:
    """Undo whatever series the state file records.  Raises :class:`TreeError` when a file was changed since."""
    notes = (target.recovered,) if target.recovered else ()
    state = target.state
    if state is None:
        return Reverted("pristine", (), notes=notes)
    problems, changes, remove = [], [], []
    changed = []
    for touched in state.files:
        try:
            pristine = target.pristine(touched.path)
        except TreeError as error:
            problems.append(Problem(error.message, error.file, None, error.hint, error.reason))
            continue
        current, full = target.read(touched.path), target.full(touched.path)
        data, mode = (pristine.data, pristine.mode) if pristine else (None, None)
        changes.append(Change(full, current, data, mode))
        remove += bytecode.stale(target.root, full)
        changed.append(touched.path)
    results = tuple(
        PatchResult(p.name, "reverted", tuple(path for path, _ in p.files)) for p in reversed(state.patches)
    )
    if problems:
        held = tuple(PatchResult(r.name, "not-reached", r.files) for r in results)
        return Reverted("failed", held, problems=tuple(problems), notes=notes, status=1)
    info = target.info
    assert info is not None
    record = target.pristine_record()
    changes.append(Change(f"{info}/RECORD", target.root.read(f"{info}/RECORD"), record.data))
    changes.append(Change(f"{info}/{NAME}", target.root.read(f"{info}/{NAME}"), None))
    if dry_run:
        return Reverted("would-revert", results, tuple(changed), notes=notes)
    target.transaction().run(changes, remove, f"revert {len(state.patches)} patches")
    target.refresh()
    return Reverted("reverted", results, tuple(changed), notes=notes)


def revert_bare(series: Series, target: Target, dry_run: bool = False) -> Reverted:
    """Take ``series``, or as much of it as stands, off a tree without metadata: it must come off exactly, and go on again to
    the same bytes.  Raises :class:`InputError` for a patch that cannot be read."""
    notes = (target.recovered,) if target.recovered else ()
    patches = parsed(series)
    names = [p.name for p in patches]
    found = standing(patches, target)
    if found is None:
        back = plan_reverse(patches, target)
        if not patches or _goes_on(patches, target):
            return Reverted("pristine", tuple(PatchResult(n, "pristine") for n in names), notes=notes)
        if back.failure is not None:
            return Reverted("failed", back.results, notes=notes, status=1)
        raise TreeError(
            "the series comes off, but applying it again would not give this tree: it was not made by this series",
            reason="altered",
            hint="restore the tree from its source",
        )
    count, back = found
    if count < len(patches):
        notes = (*notes, f"the series was applied up to {names[count - 1]} ({count} of {len(patches)} patches)")
    changes, remove = [], []
    for path in back.changed:
        current, state = target.read(path), back.after[path]
        mode = None
        if state is not None and current is not None and current.executable != state.executable:
            mode = with_executable(current.mode, state.executable)
        elif state is not None and current is None and state.executable:
            mode = 0o755
        changes.append(Change(target.full(path), current, None if state is None else state.data, mode))
        remove += bytecode.stale(target.root, target.full(path))
    results = tuple(PatchResult(r.name, "reverted", r.files, r.removed, r.added) for r in back.results)
    if dry_run:
        return Reverted("would-revert", results, back.changed, notes=notes)
    target.transaction().run(changes, remove, f"revert {count} patches")
    target.refresh()
    return Reverted("reverted", results, back.changed, notes=notes)


def _goes_on(patches: list[Patch], target: Target) -> bool:
    plan = plan_forward(patches, target)
    return plan.failure is None and any(not same(plan.before[p], s) for p, s in plan.after.items())
