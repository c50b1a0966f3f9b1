"""Computing ``lock.toml``: the hash of every touched file, before the series, after each patch, and at the end."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from patchforge.diff import FileDiff, Patch
from patchforge.engine.compiling import syntax_problems
from patchforge.engine.files import pristine_files
from patchforge.engine.model import Entry, FileState, PatchResult, Plan, Reader, Step
from patchforge.engine.place import scope_line
from patchforge.engine.plan import plan_series
from patchforge.engine.scope import Scopes
from patchforge.errors import Problem
from patchforge.series.lock import Lock, LockedFile, LockedPatch, LockedStep
from patchforge.series.parsed import Schema, parse_series_patches
from patchforge.series.project import Series
from patchforge.tree.target import Target


def compute_lock(series: Series, target: Target, schema: Schema) -> tuple[Lock | None, Plan, tuple[Problem, ...]]:
    """Plan ``series`` on the pristine files of ``target`` and lock the outcome.

    Every header is checked, every result compiled, and every touched file proved pristine by RECORD: the lock vouches for
    all of that later.  The lock is ``None`` when the plan failed or there are problems.
    """
    read = pristine_files(target)
    lock, plan, problems = lock_on(series, read, schema)
    foreign = tuple(
        Problem(what, path, None, "lock from a pristine wheel, for instance with --fetch", "foreign")
        for path, what in target.foreign(sorted(plan.before))
    )
    return (None if foreign else lock), plan, foreign + problems


def lock_on(series: Series, read: Reader, schema: Schema) -> tuple[Lock | None, Plan, tuple[Problem, ...]]:
    """The same on whatever ``read`` gives; that it is pristine is the caller's to prove."""
    assert series.pin is not None
    bare = replace(series, lock=None)
    parsed = parse_series_patches(bare, schema)
    plan = plan_series((Entry(item.patch) for item in parsed), read, names=[p.name for p in series.patches])
    if plan.failure is not None:
        return None, plan, ()
    problems = syntax_problems(plan, set(), True)
    if problems:
        return None, plan, tuple(problems)
    files = tuple(
        LockedFile(
            path, _sha(plan.before[path]), _sha(plan.after[path]), bool((s := plan.after[path]) and s.executable)
        )
        for path in sorted(plan.after)
        if plan.before[path] is not None or plan.after[path] is not None
    )
    patches = tuple(
        LockedPatch(item.file.name, item.file.sha256, _steps(item.patch, result))
        for item, result in zip(parsed, plan.results, strict=True)
    )
    lock = Lock(series.pin.distribution, series.pin.version, schema.sha256, series.sha256, patches, files)
    return lock, plan, ()


def _steps(patch: Patch, result: PatchResult) -> tuple[LockedStep, ...]:
    """One step per section, so that a hunk's section and index find its qualified name again."""
    return tuple(
        LockedStep(step.path, _sha(step.after), scopes_of(change, step), step.source if step.moved else None)
        for change, step in zip(patch.files, result.steps, strict=True)
    )


def scopes_of(change: FileDiff, step: Step) -> tuple[str, ...]:
    """The qualified name each hunk of a Python file lies in, where ``step`` found it; empty for other files."""
    if not change.path.endswith((".py", ".pyi")) or step.before is None or not change.hunks:
        return ()
    scopes = Scopes(step.before.lines)
    found = []
    for hunk, (index, _, _) in zip(change.hunks, step.edits, strict=True):
        at = index if hunk.new_eof != hunk.old_eof else index - hunk.leading
        found.append(scopes.at(scope_line(hunk, at)))
    return tuple(found)


def _sha(state: FileState | None) -> str | None:
    return None if state is None else hashlib.sha256(state.data).hexdigest()
