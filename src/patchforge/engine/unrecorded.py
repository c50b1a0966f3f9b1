"""A series that is applied though no state file says so: the lock knows its bytes, and the patches turned round the rest."""

from __future__ import annotations

import hashlib

from patchforge.engine.model import FileState, PatchResult
from patchforge.engine.reverse import parsed, plan_reverse
from patchforge.engine.revert import Reverted
from patchforge.errors import Problem, TreeError
from patchforge.series.lock import Lock
from patchforge.series.project import Series
from patchforge.tree import bytecode
from patchforge.tree.state import NAME
from patchforge.tree.target import Target
from patchforge.tree.transaction import Change, with_executable


def as_locked(lock: Lock, target: Target) -> bool:
    """True when every file the lock lists is what it is after the series, and at least one was something else before."""
    changed = False
    for file in lock.files:
        try:
            found = target.read(file.path)
        except TreeError:
            return False
        if (None if found is None else found.sha256) != file.after:
            return False
        if found is not None and found.executable != file.executable:
            return False
        changed = changed or file.before != file.after
    return changed


def revert_locked(series: Series, target: Target, dry_run: bool) -> Reverted:
    """Turn the patches round, prove the outcome by the lock, and make RECORD true again."""
    lock, info = series.lock, target.info
    assert lock is not None and info is not None
    note = "no state file says who applied the series: its patches were turned round, and the lock proves the outcome"
    back = plan_reverse(parsed(series), target)
    wrong = [file.path for file in lock.files if _sha(back.after.get(file.path)) != file.before]
    if back.failure is not None or wrong:
        problem = Problem(
            "the series is applied, no state file says how to undo it, and its patches do not come off",
            wrong[0] if wrong else None,
            None,
            "reinstall the distribution",
            "state",
        )
        held = tuple(PatchResult(p.name, "not-reached") for p in reversed(series.patches))
        return Reverted("failed", held, problems=(problem,), status=1)
    changes: list[Change] = []
    remove: list[str] = []
    rows: dict[str, bytes | None] = {}
    for path in back.changed:
        current, state = target.read(path), back.after[path]
        mode = None
        if state is not None and current is not None and current.executable != state.executable:
            mode = with_executable(current.mode, state.executable)
        executable = state is not None and state.executable
        data = None if state is None else state.data
        changes.append(Change(target.full(path), current, data, mode, executable))
        rows[target.full(path)] = data
        remove += bytecode.stale(target.root, target.full(path))
    results = tuple(PatchResult(r.name, "reverted", r.files, r.removed, r.added) for r in back.results)
    if dry_run:
        return Reverted("would-revert", results, back.changed, notes=(note,))
    rows[f"{info}/{NAME}"] = None  # RECORD lists it, and it is gone
    record, _ = target.record().rewritten(rows)
    changes.append(Change(f"{info}/RECORD", target.root.read(f"{info}/RECORD"), record))
    target.transaction().run(changes, remove, f"revert {len(results)} patches")
    target.refresh()
    return Reverted("reverted", results, back.changed, notes=(note,))


def _sha(state: FileState | None) -> str | None:
    return None if state is None else hashlib.sha256(state.data).hexdigest()
