"""Writing a branch back to the project: patches, series, lock and table, in one transaction."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from patchforge.branch.back import ReadBranch, ReadPatch, patch_path, read_mark
from patchforge.branch.derived import Files, keep, lock_and_table, table
from patchforge.branch.git import Repository
from patchforge.branch.order import rewritten
from patchforge.branch.out import write_mark
from patchforge.engine.model import FileState, Reader
from patchforge.errors import InputError, Problem
from patchforge.series.parsed import Schema
from patchforge.series.project import PatchFile, Series
from patchforge.tree.target import Target
from patchforge.tree.transaction import Change


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh found and, unless it only looked, wrote: files relative to the project, ``None`` for removed ones."""

    patches: tuple[ReadPatch, ...]
    dropped: tuple[str, ...]
    files: tuple[tuple[str, bytes | None], ...]
    series: str
    problems: tuple[Problem, ...] = ()


def refreshed(repository: Repository, series: Series, branch: ReadBranch, schema: Schema | None) -> Refreshed:
    """Compute every file the project should have; nothing is written."""
    new = _series(series, branch.patches)
    root = series.project or series.directory
    files: Files = {}
    listed = {p.path for p in series.patches}
    for patch in branch.patches:
        path = patch_path(series, patch.name)
        if path not in listed and path.exists():
            raise InputError(
                f"there is a file for '{patch.name}' that the series does not list: it would be overwritten",
                reason="exists",
                file=path.relative_to(root).as_posix(),
                hint="move it away, or give the commit another Patch-Name",
            )
        if not path.is_file() or path.read_bytes() != patch.data:
            files[path.relative_to(root).as_posix()] = patch.data
    names = {patch.name for patch in branch.patches}
    for file in series.patches:
        if file.name not in names:
            files[file.path.relative_to(root).as_posix()] = None
    _order(series, branch, root, files)
    if schema is None or series.pin is None:
        return Refreshed(branch.patches, branch.dropped, tuple(sorted(files.items())), new.sha256)
    if new.sha256 == series.sha256 and series.lock_is_current and vouched_by(series, schema):
        table(files, series, schema)  # the lock was made from these very patches
        return Refreshed(branch.patches, branch.dropped, tuple(sorted(files.items())), new.sha256)
    _, problems = lock_and_table(files, new, pristine_blobs(repository, branch.base), schema)
    return Refreshed(branch.patches, branch.dropped, tuple(sorted(files.items())), new.sha256, problems)


def vouched_by(series: Series, schema: Schema) -> bool:
    """True when the lock was made under this schema of headers."""
    return series.lock is not None and series.lock.headers == schema.sha256


def pristine_blobs(repository: Repository, base: str) -> Reader:
    """The files of the commit ``base``."""
    executables: dict[str, bool] = {}

    def read(path: str) -> FileState | None:
        if not executables:
            for line in repository.text("ls-tree", "-r", "-z", base).split("\0"):
                meta, _, name = line.partition("\t")
                executables[name] = meta.startswith("100755")
        data = repository.blob(base, path)
        return None if data is None else FileState.of(data, executables.get(path, False))

    return read


def _series(series: Series, patches: tuple[ReadPatch, ...]) -> Series:
    strips = {p.name: p.strip for p in series.patches}
    default = series.pin.strip if series.pin else 1
    root = series.project or series.directory
    made = []
    for patch in patches:
        path = patch_path(series, patch.name)
        strip = strips.get(patch.was or patch.name, default)
        if strip != 1 and patch.result != "kept":
            raise InputError(
                f"patch '{patch.name}' has strip level {strip}, and refresh writes level 1",
                reason="series",
                hint="give every patch of the series the strip level 1 first",
            )
        label = path.relative_to(root).as_posix()
        made.append(PatchFile(patch.name, label, path, strip, patch.data, hashlib.sha256(patch.data).hexdigest()))
    return replace(series, patches=tuple(made), lock=None)


def _order(series: Series, branch: ReadBranch, root: Path, files: Files) -> None:
    """The series file, comments kept."""
    path = series.directory / "series" if series.pin is None else root / "series" / series.pin.id / "series"
    suffix = "" if series.pin is None else ".patch"
    old = [p.path.name if series.pin is not None else p.name for p in series.patches]
    new = [patch.name + suffix for patch in branch.patches]
    renamed = {(p.was or "") + suffix: p.name + suffix for p in branch.patches if p.was is not None}
    text = path.read_bytes().decode("utf-8")
    keep(files, root, path.relative_to(root).as_posix(), rewritten(text, old, new, renamed).encode())


def write(target: Target, done: Refreshed, repository: Repository) -> None:
    """Write what ``done`` says, all of it or nothing; ``target`` is the project, opened as a bare tree for writing."""
    changes = [Change(path, target.root.read(path), data) for path, data in done.files]
    target.transaction().run(changes, [], "refresh the series")
    write_mark(
        repository, {**read_mark(repository), "tip": repository.text("rev-parse", "HEAD"), "series": done.series}
    )
