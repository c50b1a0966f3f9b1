"""Changing many files at once: all of them, or none, whatever happens in between.

The order is what makes it safe.  A journal is written first (``prepare``), then every new file beside the one it will
replace, flushed; then the journal is renamed to ``commit``, which is the moment the change is decided; then the files are
renamed into place, deletions done, directories flushed, and the journal removed.  A run that dies before that moment
leaves a ``prepare`` journal, from which the next run removes the new files; one that dies after it leaves a ``commit``
journal, from which the next run finishes.  Files are never written in place, because environments share them by hard link.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from patchforge.errors import TreeError
from patchforge.tree.journal import COMMIT, PREPARE, sane
from patchforge.tree.root import OnDisk, Root, create, write_all

SUFFIX = ".patchforge-tmp"
_BATCH = 128
Hook = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Change:
    """One file's change: what is there now, the new bytes (``None``: remove it), and the new permission bits.

    ``mode`` ``None`` keeps the bits of the old file, or takes the process's default for a new one.
    """

    path: str
    before: OnDisk | None
    data: bytes | None
    mode: int | None = None


def with_executable(mode: int, executable: bool) -> int:
    """``mode`` with the executable bits cleared, or set for everybody who may read."""
    return mode | ((mode & 0o444) >> 2) if executable else mode & ~0o111


def _nothing(_: str) -> None:
    return None


def temp_name(path: str) -> str:
    """Where the new bytes of ``path`` wait."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}{SUFFIX}"


class Transaction:
    """One change of a tree.  ``home`` is the directory, relative to the root, in which the journal lies."""

    def __init__(self, root: Root, home: str, hook: Hook | None = None) -> None:
        self.root = root
        self.home = home
        self.hook = hook or _nothing

    def run(self, changes: list[Change], remove: list[str], what: str) -> None:
        """Make ``changes`` and remove the files ``remove`` (bytecode); ``what`` describes it in the journal.

        Raises :class:`TreeError` with nothing changed when a file cannot be written.
        """
        ops = [
            {
                "path": change.path,
                "before": change.before.sha256 if change.before else None,
                "after": None if change.data is None else hashlib.sha256(change.data).hexdigest(),
            }
            for change in changes
        ]
        made = self._new_directories(changes)
        journal = {"schema": 1, "what": what, "ops": ops, "remove": remove, "made": made}
        self._write_journal(journal)
        try:
            self.hook("prepared")
            self._make_directories(made)
            self._stage_all([change for change in changes if change.data is not None])
            self._decide()
        except BaseException as error:
            self._roll_back(journal)
            if isinstance(error, OSError):
                raise _failed(error) from error
            raise
        self.hook("committed")
        self._finish(journal)

    def _write_journal(self, journal: dict[str, Any]) -> None:
        home, _ = self.root.split(f"{self.home}/x" if self.home else "x")
        data = json.dumps(journal).encode()
        try:
            self._put(home, PREPARE, data, 0o600)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(PREPARE, dir_fd=home)
            raise _failed(error) from error

    def _put(self, folder: int | None, name: str, data: bytes, mode: int) -> None:
        assert folder is not None
        fd = create(name, folder, mode)
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _new_directories(self, changes: list[Change]) -> list[str]:
        made: list[str] = []
        for change in changes:
            if change.data is None:
                continue
            folder = change.path.rpartition("/")[0]
            missing = []
            while folder and folder not in made and self.root.directory(folder) is None:
                missing.append(folder)
                folder = folder.rpartition("/")[0]
            made.extend(reversed(missing))
        return made

    def _make_directories(self, made: list[str]) -> None:
        for folder in made:
            parent, name = self.root.split(folder)
            os.mkdir(name, 0o777, dir_fd=parent)
            self.hook(f"made {folder}")

    def _stage_all(self, changes: list[Change]) -> None:
        """Write every new file beside its target and flush it, and the directories that name it.

        Flushing comes after writing, in batches, so that the file system can commit many files at once.
        """
        for start in range(0, len(changes), _BATCH):
            open_files: list[int] = []
            try:
                for change in changes[start : start + _BATCH]:
                    open_files.append(self._stage(change))
                    self.hook(f"staged {change.path}")
                for fd in open_files:
                    os.fsync(fd)
            finally:
                for fd in open_files:
                    os.close(fd)
        self.hook("files flushed")
        # Without this a power cut could keep the decision and lose the names of what it decides about.
        for _, fd in self.root.directories():
            os.fsync(fd)
        self.hook("directories flushed")

    def _stage(self, change: Change) -> int:
        """Write one file; return its descriptor, not yet flushed."""
        folder, name = self.root.split(temp_name(change.path))
        assert folder is not None and change.data is not None
        fd = create(name, folder, 0o666)
        try:
            mode = change.mode
            if change.before is not None:
                info = os.fstat(fd)
                if (info.st_uid, info.st_gid) != (change.before.uid, change.before.gid):
                    os.fchown(fd, change.before.uid, change.before.gid)
                mode = change.before.mode if mode is None else mode
            if mode is not None:
                os.fchmod(fd, mode)
            write_all(fd, change.data)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _decide(self) -> None:
        """Rename the journal: from here on the change will be finished, whatever happens."""
        home, _ = self.root.split(f"{self.home}/x" if self.home else "x")
        assert home is not None
        os.rename(PREPARE, COMMIT, src_dir_fd=home, dst_dir_fd=home)
        try:
            os.fsync(home)
        except OSError:
            # Nobody knows whether the decision would outlast a power cut: take it back while every new file is still there.
            os.rename(COMMIT, PREPARE, src_dir_fd=home, dst_dir_fd=home)
            raise

    def _roll_back(self, journal: dict[str, Any]) -> None:
        for op in journal["ops"]:
            # Whatever stands in the way, the other files that were written still go.
            with contextlib.suppress(FileNotFoundError, TreeError):
                folder, name = self.root.split(temp_name(op["path"]))
                if folder is not None:
                    os.unlink(name, dir_fd=folder)
                    self.hook(f"unstaged {op['path']}")
        for folder_path in reversed(journal["made"]):
            self._remove_directory(folder_path)
        self._drop_journal(PREPARE)

    def _remove_directory(self, path: str) -> None:
        parent, name = self.root.split(path)
        if parent is None or not path:
            return
        self.root.forget(path)
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=parent)

    def _drop_journal(self, name: str) -> None:
        home, _ = self.root.split(f"{self.home}/x" if self.home else "x")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=home)

    def _finish(self, journal: dict[str, Any]) -> None:
        """Bring a decided change to its end; may be run any number of times."""
        try:
            self._finish_all(journal)
        except OSError as error:
            raise TreeError(
                f"the change is decided and not finished: {error.strerror or error}",
                reason="write",
                hint="free space or permissions, then run any command that changes the tree: it finishes this one first",
            ) from error

    def _finish_all(self, journal: dict[str, Any]) -> None:
        emptied: set[str] = set()
        for op in journal["ops"]:
            self._finish_one(op, emptied)
            self.hook(f"done {op['path']}")
        for path in journal["remove"]:
            folder, name = self.root.split(path)
            if folder is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
                    self.hook(f"removed {path}")
                emptied.add(path.rpartition("/")[0])
        for folder_path in sorted(emptied, key=lambda p: -p.count("/")):
            self._prune(folder_path, journal)
        for _, fd in self.root.directories():
            os.fsync(fd)
        self.hook("flushed")
        self._drop_journal(COMMIT)
        home, _ = self.root.split(f"{self.home}/x" if self.home else "x")
        if home is not None:
            with contextlib.suppress(OSError):  # a journal that comes back after a power cut is finished once more
                os.fsync(home)

    def _finish_one(self, op: dict[str, Any], emptied: set[str]) -> None:
        path = op["path"]
        folder, name = self.root.split(path)
        if op["after"] is None:
            if folder is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
                emptied.add(path.rpartition("/")[0])
            return
        temp = temp_name(path).rpartition("/")[2]
        if folder is not None:
            try:
                os.replace(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
                return
            except FileNotFoundError:
                pass
        current = self.root.read(path)
        if current is None or current.sha256 != op["after"]:
            raise TreeError(
                f"{path} was changed by someone else while a change was half done",
                reason="journal",
                file=path,
                hint="reinstall the distribution, then apply again",
            )

    def _prune(self, path: str, journal: dict[str, Any]) -> None:
        """Remove directories that the deletions emptied, as git and GNU patch do."""
        while path and path != self.home:
            parent, name = self.root.split(path)
            if parent is None:
                return
            self.root.forget(path)
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError:
                return
            path = path.rpartition("/")[0]

    def recover(self) -> str | None:
        """Finish or roll back what an interrupted run left; say what was done, or ``None`` when nothing was left."""
        home, _ = self.root.split(f"{self.home}/x" if self.home else "x")
        if home is None:
            return None
        for name, decided in ((COMMIT, True), (PREPARE, False)):
            try:
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=home)
            except FileNotFoundError:
                continue
            with os.fdopen(fd, "rb") as stream:
                data = stream.read()
            try:
                journal = json.loads(data)
                ops = journal["ops"]
                if not sane(journal):
                    raise ValueError("unsafe paths")
            except (ValueError, KeyError, TypeError):
                if decided:
                    raise TreeError(
                        f"the journal {name} cannot be read", reason="journal", hint="reinstall the distribution"
                    ) from None
                self._drop_journal(PREPARE)
                return "an interrupted run had changed nothing; its journal was removed"
            if decided:
                self._finish(journal)
                return f"an interrupted run was finished: {journal['what']} ({len(ops)} files)"
            self._roll_back(journal)
            return f"an interrupted run was rolled back: {journal['what']}"
        return None

    def pending(self) -> str | None:
        """``commit`` or ``prepare`` when an interrupted run left its journal, without touching anything."""
        home, _ = self.root.split(f"{self.home}/x" if self.home else "x")
        if home is None:
            return None
        for name, word in ((COMMIT, "commit"), (PREPARE, "prepare")):
            with contextlib.suppress(FileNotFoundError):
                os.stat(name, dir_fd=home, follow_symlinks=False)
                return word
        return None


def _failed(error: OSError) -> TreeError:
    return TreeError(
        f"cannot write: {error.strerror or error}" + (f" ({error.filename})" if error.filename else ""),
        reason="write",
        hint="nothing was changed; free space or permissions, then run it again",
    )
