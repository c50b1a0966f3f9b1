"""Planning the whole series in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import partial

from patchforge.diff import FileDiff, Patch
from patchforge.engine.diagnose import explain
from patchforge.engine.model import (
    Entry,
    Failure,
    FileState,
    Offset,
    PatchResult,
    Plan,
    Reader,
    Step,
    same,
)
from patchforge.engine.place import Misplaced, Options, expected, pieces, place_hunks, splice
from patchforge.errors import InputError, PatchforgeError

MAX_COPIED = 30_000_000
"""Lines that the sections of one patch may make the planner copy."""


class _Stop(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class Overlay:
    """The tree as the patches planned so far have left it."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self.before: dict[str, FileState | None] = {}
        self.now: dict[str, FileState | None] = {}
        self.folders: set[str] = set()

    def clash(self, path: str) -> str | None:
        """The path that would be a file and a directory at once if ``path`` were made; notes its directories."""
        if path in self.folders:
            return path
        parent = path.rpartition("/")[0]
        while parent:
            if self.now.get(parent) is not None or self.before.get(parent) is not None:
                return parent
            self.folders.add(parent)
            parent = parent.rpartition("/")[0]
        return None

    def get(self, path: str) -> FileState | None:
        """The file as it is now; reads the tree once per path."""
        if path not in self.now:
            self.before[path] = self.now[path] = self._read(path)
        return self.now[path]


def plan_series(
    entries: Iterable[Entry], read: Reader, options: Options | None = None, names: Iterable[str] = ()
) -> Plan:
    """Plan every patch of ``entries`` on the tree behind ``read``; stop at the first that fails.

    ``names`` lists all patches of the series, so that those after a failure are reported as not reached.
    """
    overlay = Overlay(read)
    results: list[PatchResult] = []
    options = options or Options()
    everything = list(names)
    for entry in entries:
        try:
            results.append(plan_patch(entry, overlay, options))
        except _Stop as stop:
            results.append(PatchResult(entry.patch.name, "failed", failure=stop.failure))
            break
        except PatchforgeError as error:
            results.append(PatchResult(entry.patch.name, "failed", failure=failure_of(entry.patch.name, error)))
            break
    for name in everything[len(results) :]:
        results.append(PatchResult(name, "not-reached"))
    return Plan(tuple(results), overlay.before, overlay.now)


def failure_of(patch: str, error: PatchforgeError) -> Failure:
    """The failure that ``error`` is for ``patch``."""
    malformed = isinstance(error, InputError)
    return Failure(
        patch,
        error.reason,
        error.message,
        patch_file=error.file if malformed else None,
        file=None if malformed else error.file,
        line=error.line,
        hint=error.hint,
        status=error.status,
    )


def plan_patch(entry: Entry, overlay: Overlay, options: Options) -> PatchResult:
    """Plan one patch on ``overlay`` and move it on; raises ``_Stop`` with the failure."""
    patch = entry.patch
    start = dict(overlay.now)
    vacated = {c.old_path for c in patch.files if c.action in ("rename", "delete", "discard")}
    steps: list[Step] = []
    offsets: list[Offset] = []
    gone: set[str] = set()
    made: dict[str, FileState | None] = {}
    added = removed = copied = 0
    for section, change in enumerate(patch.files):
        source = _source(patch, change, overlay, start, made, gone)
        _target_free(patch, change, overlay, vacated, gone, made)
        _check_mode(patch, change, source)
        lines = source.lines if source is not None else [b""]
        copied += len(lines)
        if section and copied > MAX_COPIED:
            raise _Stop(
                Failure(
                    patch.name,
                    "limit",
                    "the patch has too many sections for files of this size",
                    patch.label,
                    file=change.path,
                    line=change.line,
                    hint="merge the sections that change the same file",
                )
            )
        try:
            placed = place_hunks(lines, change, partial(entry.scope, section), options)
        except Misplaced as problem:
            raise _Stop(explain(patch, change, lines, problem)) from None
        edits = tuple(pieces(hunk, at) for hunk, at in zip(change.hunks, placed, strict=True))
        after = _after(change, source, splice(lines, edits), patch)
        for number, (hunk, at) in enumerate(zip(change.hunks, placed, strict=True)):
            added += hunk.added
            removed += hunk.removed
            if at != expected(hunk):
                offsets.append(Offset(change.path, number + 1, at - expected(hunk)))
        overlay.get(change.path)
        steps.append(Step(change.path, change.old_path, source, after, edits, change.action == "rename"))
        if change.action in ("delete", "rename", "discard") and change.old_path not in made:
            assert change.old_path is not None
            overlay.now[change.old_path] = None
            gone.add(change.old_path)
        if change.new_path is not None:
            overlay.now[change.new_path] = after
            made[change.new_path] = after
    result = "offset" if offsets else "applied"
    files = tuple(dict.fromkeys(change.path for change in patch.files))
    return PatchResult(patch.name, result, files, added, removed, tuple(offsets), None, tuple(steps))


def _source(
    patch: Patch,
    change: FileDiff,
    overlay: Overlay,
    start: dict[str, FileState | None],
    made: dict[str, FileState | None],
    gone: set[str],
) -> FileState | None:
    """The state a section's hunks are matched against; ``None`` for a new file."""
    if change.action == "create":
        return None
    assert change.old_path is not None
    if change.action in ("copy", "rename"):
        overlay.get(change.old_path)
        state = start.get(change.old_path, overlay.before[change.old_path])
    else:
        state = overlay.get(change.old_path)
    if state is None:
        detail = "an earlier patch or section removed it" if change.old_path in gone else None
        raise _Stop(
            Failure(
                patch.name,
                "missing",
                f"{change.old_path} does not exist in the tree" + (f" ({detail})" if detail else ""),
                patch.label,
                file=change.old_path,
                line=change.line,
                hint="is it another version, or was the file moved? a new file needs '--- /dev/null'",
            )
        )
    return state


def _target_free(
    patch: Patch,
    change: FileDiff,
    overlay: Overlay,
    vacated: set[str | None],
    gone: set[str],
    made: dict[str, FileState | None],
) -> None:
    if change.action not in ("create", "rename", "copy"):
        return
    assert change.new_path is not None
    clash = overlay.clash(change.new_path)
    if clash is not None:
        raise _Stop(
            Failure(
                patch.name,
                "exists",
                f"the series makes {clash} both a file and a directory",
                patch.label,
                file=change.new_path,
                line=change.line,
                hint="give one of them another name",
            )
        )
    current = overlay.get(change.new_path)
    if current is None or (change.new_path in vacated and change.new_path not in made):
        return
    wanted = [line for hunk in change.hunks for line in hunk.new] + [b""]
    if change.hunks and change.hunks[0].new_eof:
        wanted.pop()
    equal = change.action == "create" and current.lines == wanted
    raise _Stop(
        Failure(
            patch.name,
            "already" if equal else "exists",
            f"{change.new_path} exists already" + (", with exactly these bytes: already applied" if equal else ""),
            patch.label,
            file=change.new_path,
            line=change.line,
            hint=None if equal else "the tree is not the pristine one, or the file is new upstream",
        )
    )


def _check_mode(patch: Patch, change: FileDiff, source: FileState | None) -> None:
    if source is None or change.action == "discard" or change.old_mode is None or change.new_mode is None:
        return
    if (change.old_mode == 0o100755) != source.executable:
        raise _Stop(
            Failure(
                patch.name,
                "mode",
                f"{change.old_path} is {'' if source.executable else 'not '}executable, the patch expects "
                f"mode {change.old_mode:o}",
                file=change.old_path,
                line=change.line,
            )
        )


def _after(change: FileDiff, source: FileState | None, lines: list[bytes], patch: Patch) -> FileState | None:
    if change.action == "delete":
        if lines != [b""]:
            raise _Stop(
                Failure(
                    patch.name,
                    "context",
                    f"{change.old_path} has more content than the deletion removes",
                    patch.label,
                    file=change.old_path,
                    line=change.line,
                    hint="the tree's file differs from the one the patch was cut against",
                )
            )
        return None
    if change.action == "discard":
        return None
    executable = source.executable if source is not None else False
    if change.new_mode is not None:
        executable = change.new_mode == 0o100755
    state = FileState(lines, executable)
    if change.action == "modify" and same(source, state):
        raise _Stop(
            Failure(
                patch.name,
                "no-change",
                f"{change.path} would not change",
                patch.label,
                file=change.path,
                line=change.line,
            )
        )
    return state


def digest(state: FileState) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    return hashlib.sha256(state.data).hexdigest()
