"""Applying a series to a tree: plan in memory, prove, then change the tree in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from patchforge import __version__
from patchforge.engine.compiling import syntax_problems
from patchforge.engine.files import pristine_files
from patchforge.engine.model import Entry, Failure, FileState, PatchResult, Plan
from patchforge.engine.place import Options
from patchforge.engine.plan import failure_of, plan_series
from patchforge.engine.undo import undo_of
from patchforge.errors import InputError, Problem, Refused, TreeError
from patchforge.series.lock import Lock
from patchforge.series.parsed import ParsedPatch, Schema, parse_series_patches
from patchforge.series.project import Series
from patchforge.tree import bytecode
from patchforge.tree.record import Record
from patchforge.tree.root import OnDisk
from patchforge.tree.state import NAME, AppliedPatch, State, TouchedFile, dump_state
from patchforge.tree.target import Target
from patchforge.tree.transaction import Change, with_executable


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """``unlocked`` lets a series apply although lock.toml was made from other patches."""

    dry_run: bool = False
    exact: bool = False
    unlocked: bool = False
    upto: str | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What an apply did.  ``outcome``: ``applied``, ``already``, ``would-apply`` or ``failed``."""

    outcome: str
    results: tuple[PatchResult, ...]
    changed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    status: int = 0


def apply_series(
    series: Series,
    target: Target,
    schema: Schema | None,
    options: ApplyOptions,
    progress: Callable[[str, int, int], None] | None = None,
) -> Applied:
    """Apply ``series`` (whole, or up to ``options.upto``) to an opened ``target``.

    The tree is changed only when every patch lands, every result compiles and agrees with the lock.  Raises
    :class:`InputError` for headers, :class:`TreeError` for a tree that is neither pristine nor ours.
    """
    wanted = series.upto(options.upto)
    notes = [target.recovered] if target.recovered else []
    state = target.state
    if state is not None and state.series == wanted.sha256:
        _unaltered(target, state)
        results = tuple(PatchResult(p.name, "already", tuple(path for path, _ in p.files)) for p in state.patches)
        return Applied("already", results, notes=tuple(notes))
    lock = _usable_lock(series, options)
    if state is None and target.info is not None and lock is not None and wanted is series and _as_locked(lock, target):
        notes.append("the bytes are those of the lock, and no state file says who put them there")
        return Applied("already", _all(wanted, "already"), notes=tuple(notes))
    if state is not None:
        notes.append(f"replaces the series applied before ({len(state.patches)} patches)")
        _unaltered(target, state)
    plan, off = _plan(series, wanted, target, schema, lock, options, progress), False
    if plan.failure is not None and target.info is None and plan.failure.status == 1:
        from patchforge.engine.bare import bring  # only here are patches turned round

        moved = bring(series, len(wanted.patches), target, plan, options.exact)
        plan, off = moved.plan, moved.off
        notes += moved.notes
        if not moved.plan.changed and plan.failure is None:
            return Applied("already", plan.results, notes=tuple(notes))
    if plan.failure is not None:
        return _failed(target, plan, notes)
    foreign = _foreign(target, plan)
    if foreign:
        return Applied("failed", _all(wanted, "not-reached"), problems=foreign, notes=tuple(notes), status=1)
    problems = _agree_with_lock(series, wanted, plan, lock)
    vouched = {(f.path, f.after) for f in lock.files} if lock is not None and wanted is series else set()
    problems += [] if off else syntax_problems(plan, vouched, target.info is not None)
    if problems:
        return Applied("failed", _all(wanted, "not-reached"), problems=tuple(problems), notes=tuple(notes), status=1)
    changed = plan.changed
    if options.dry_run:
        return Applied("would-apply", plan.results, changed, notes=tuple(notes))
    _commit(wanted, target, plan, options)
    return Applied("applied", plan.results, changed, notes=tuple(notes))


def _as_locked(lock: Lock, target: Target) -> bool:
    """True when the first file of the lock is as the series leaves it, and so are all others."""
    first = next((file for file in lock.files if file.before != file.after), None)
    if first is None:
        return False
    found = target.read(first.path)
    if (None if found is None else found.sha256) != first.after:
        return False
    from patchforge.engine.unrecorded import as_locked

    return as_locked(lock, target)


def _all(series: Series, result: str) -> tuple[PatchResult, ...]:
    return tuple(PatchResult(p.name, result) for p in series.patches)


def _unaltered(target: Target, state: State) -> None:
    """Every file the state speaks of must be what it says; raises :class:`TreeError` naming all that are not."""
    wrong = []
    for touched in state.files:
        current = target.read(touched.path)
        if (current.sha256 if current else None) != touched.after:
            wrong.append(touched.path)
    if wrong:
        listed = ", ".join(wrong[:8]) + (f" and {len(wrong) - 8} more" if len(wrong) > 8 else "")
        raise TreeError(
            f"{len(wrong)} file{'s were' if len(wrong) > 1 else ' was'} changed after the series was applied: {listed}",
            reason="altered",
            file=wrong[0],
            hint="'patchforge status' shows what is in each; reinstall the distribution, then apply again",
        )


def _usable_lock(series: Series, options: ApplyOptions) -> Lock | None:
    if series.lock is None or series.lock_is_current:
        return series.lock
    if options.unlocked:
        return None
    raise Refused(
        "the patches are not those lock.toml was made from",
        reason="lock",
        file=series.lock_label,
        hint="review the change, then run 'patchforge lock' (or try it out with --unlocked)",
    )


def _plan(
    series: Series,
    wanted: Series,
    target: Target,
    schema: Schema | None,
    lock: Lock | None,
    options: ApplyOptions,
    progress: Callable[[str, int, int], None] | None,
) -> Plan:
    names = [p.name for p in wanted.patches]
    read = pristine_files(target)
    try:
        parsed = parse_series_patches(wanted, schema, series)
    except InputError as error:
        if error.patch is None:
            raise
        at = names.index(error.patch)
        results = [PatchResult(name, "not-reached") for name in names]
        results[at] = PatchResult(error.patch, "failed", failure=failure_of(error.patch, error))
        return Plan(tuple(results), {}, {})

    def entries() -> object:
        for number, item in enumerate(parsed):
            if progress is not None:
                progress(item.file.name, number, len(parsed))
            yield entry_of(item, lock)

    return plan_series(entries(), read, Options(exact=options.exact), names)  # type: ignore[arg-type]


def plan_only(series: Series, target: Target, schema: Schema | None) -> tuple[Plan, list[bytes]]:
    """Plan the whole series on the pristine files of ``target``; also give each patch's text before its diff."""
    read = pristine_files(target)
    parsed = parse_series_patches(series, schema)
    lock = series.lock if series.lock_is_current else None
    plan = plan_series((entry_of(item, lock) for item in parsed), read, names=[p.name for p in series.patches])
    return plan, [item.patch.text for item in parsed]


def entry_of(item: ParsedPatch, lock: Lock | None) -> Entry:
    """The plan's entry for a parsed patch, with the qualified names the lock knows."""
    locked = lock.patch(item.file.name) if lock is not None else None
    if locked is None or locked.sha256 != item.file.sha256:
        return Entry(item.patch)
    names = [step.scopes for step in locked.steps]

    def scope(section: int, hunk: int) -> str | None:
        return names[section][hunk] if section < len(names) and hunk < len(names[section]) else None

    return Entry(item.patch, scope)


def _failed(target: Target, plan: Plan, notes: list[str]) -> Applied:
    """Say why; a tree that was edited by someone else is said to be so."""
    failure = plan.failure
    assert failure is not None
    problems = tuple(p for p in _foreign(target, plan) if p.file == failure.file or failure.file is None)
    return Applied("failed", plan.results, problems=problems, notes=tuple(notes), status=failure.status)


def _foreign(target: Target, plan: Plan) -> tuple[Problem, ...]:
    return tuple(
        Problem(
            what,
            path,
            None,
            "the tree is neither pristine nor ours: reinstall the distribution, then apply again",
            "foreign",
        )
        for path, what in target.foreign(sorted(plan.before))
    )


def _agree_with_lock(series: Series, wanted: Series, plan: Plan, lock: Lock | None) -> list[Problem]:
    if lock is None or wanted is not series:
        return []
    problems = []
    for file in lock.files:
        for when, states, expected in (("before", plan.before, file.before), ("after", plan.after, file.after)):
            state = states.get(file.path)
            have = None if state is None else hashlib.sha256(state.data).hexdigest()
            if have != expected:
                problems.append(
                    Problem(
                        f"{when} the series it should hash to {str(expected)[:12]}…, and is {str(have)[:12]}…",
                        file.path,
                        None,
                        "the tree is not the locked release, or lock.toml is out of date",
                        "lock",
                    )
                )
                break
    return problems


def _commit(series: Series, target: Target, plan: Plan, options: ApplyOptions) -> None:
    """Write the plan to the tree: files, RECORD, state."""
    touched = {f.path for f in target.state.files} if target.state else set()
    changes: list[Change] = []
    files: list[TouchedFile] = []
    record: dict[str, bytes | None] = {}
    remove: list[str] = []
    changed = set(plan.changed)
    for path in sorted(touched | changed):
        current, pristine = target.read(path), target.pristine(path)
        after = plan.after[path] if path in changed else None
        if path in changed:
            data = None if after is None else after.data
            mode = _mode(pristine, after, current)
            if target.info is not None:
                files.append(_touched(path, pristine, data, mode, plan))
            record[target.full(path)] = data
        else:
            data, mode = (pristine.data, pristine.mode) if pristine else (None, None)
        if (current.data if current else None) != data or (current and mode is not None and current.mode != mode):
            changes.append(Change(target.full(path), current, data, mode, after is not None and after.executable))
            remove += bytecode.stale(target.root, target.full(path))
    if target.info is not None:
        changes += _metadata(series, target, plan, options, files, record)
    target.transaction().run(changes, remove, f"apply {len(series.patches)} patches")
    target.refresh()


def _mode(pristine: OnDisk | None, after: FileState | None, current: OnDisk | None) -> int | None:
    """The new permission bits; ``None``: there is no file (any more), or it gets the default of a new one."""
    old = pristine or current  # the latter was made by an older series
    if after is None or old is None:
        return None
    return old.mode if old.executable == after.executable else with_executable(old.mode, after.executable)


def _touched(path: str, pristine: OnDisk | None, data: bytes | None, mode: int | None, plan: Plan) -> TouchedFile:
    before = pristine.sha256 if pristine else None
    after = None if data is None else hashlib.sha256(data).hexdigest()
    keep = pristine.mode if pristine and (data is None or mode != pristine.mode) else None
    return TouchedFile(path, before, after, keep, undo_of(path, pristine.data if pristine else None, plan))


def _metadata(
    series: Series,
    target: Target,
    plan: Plan,
    options: ApplyOptions,
    files: list[TouchedFile],
    record: dict[str, bytes | None],
) -> list[Change]:
    """The changes of RECORD and the state file."""
    info = target.info
    assert info is not None
    pristine: Record = target.pristine_record()
    state_path = f"{info}/{NAME}"
    _, undo = pristine.rewritten({**record, state_path: b""})
    state = State(
        f"patchforge {__version__}",
        target.distribution,
        target.version,
        series.sha256,
        series.patches[-1].name if options.upto and series.patches else None,
        tuple(
            _applied_patch(file.name, file.sha256, result)
            for file, result in zip(series.patches, plan.results, strict=True)
        ),
        tuple(files),
        tuple(undo),
        hashlib.sha256(pristine.data).hexdigest(),
    )
    data = dump_state(state)
    rewritten, _ = pristine.rewritten({**record, state_path: data})
    return [
        Change(f"{info}/RECORD", target.root.read(f"{info}/RECORD"), rewritten),
        Change(state_path, target.root.read(state_path), data),
    ]


def _applied_patch(name: str, sha256: str, result: PatchResult) -> AppliedPatch:
    final: dict[str, str | None] = {}
    for step in result.steps:
        final[step.path] = None if step.after is None else hashlib.sha256(step.after.data).hexdigest()
        if step.source is not None and step.source != step.path and step.moved:
            final[step.source] = None
    return AppliedPatch(name, sha256, tuple(final.items()))


def failures(applied: Applied) -> list[Failure]:
    """Every failure among the results."""
    return [r.failure for r in applied.results if r.failure is not None]
