"""Changing many files at once: all of them, or none, whatever happens in between.

The order is what makes it safe.  A journal is written first (``prepare``), then every new file beside the one it will
replace, flushed; then the journal is renamed to ``commit``, which is the moment the change is decided; then the files are
renamed into place, deletions done, directories flushed, and the journal removed.  A run that dies before that moment
leaves a ``prepare`` journal, from which the next run removes the new files; one that dies after it leaves a ``commit``
journal, from which the next run finishes.  Files are never written in place, because environments share them by hard link.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

from patchforge.errors import TreeError
from patchforge.tree.disk import Disk, Hook
from patchforge.tree.journal import COMMIT, PREPARE, Journal, Op, check, temp_name
from patchforge.tree.root import OnDisk, Root
from patchforge.tree.signals import held

_BATCH = 256


@dataclass(frozen=True, slots=True)
class Change:
    """One file's change: what is there now, the new bytes (``None``: remove it), and the new permission bits.

    ``mode`` ``None`` keeps the bits of the old file, or takes the process's default for a new one, ``executable`` or not.
    """

    path: str
    before: OnDisk | None
    data: bytes | None
    mode: int | None = None
    executable: bool = False


def with_executable(mode: int, executable: bool) -> int:
    """``mode`` with the executable bits cleared, or set for everybody who may read."""
    return mode | ((mode & 0o444) >> 2) if executable else mode & ~0o111


def parent(path: str) -> str:
    """The directory of ``path``; ``""`` is the root."""
    return path.rpartition("/")[0]


class Transaction:
    """One change of a tree: files below ``prefix``; the journal lies in ``home``; both are relative to the root."""

    def __init__(self, root: Root, home: str, hook: Hook | None = None, prefix: str = "") -> None:
        self.root = root
        self.home = home
        self.prefix = prefix
        self.disk = Disk(root, hook)

    def journal_path(self, name: str) -> str:
        """The path of the journal called ``name``."""
        return f"{self.home}/{name}" if self.home else name

    def run(self, changes: list[Change], remove: list[str], what: str) -> None:
        """Make ``changes`` and remove the files ``remove`` (bytecode); ``what`` describes it in the journal.

        Raises :class:`TreeError` with nothing changed when a file cannot be written.
        """
        ops = tuple(
            Op(
                change.path,
                change.before.sha256 if change.before else None,
                None if change.data is None else hashlib.sha256(change.data).hexdigest(),
            )
            for change in changes
        )
        journal = Journal(what, ops, tuple(remove), tuple(self._new_directories(changes)))
        try:
            check(journal, self.prefix, self.home)
        except ValueError as error:
            raise TreeError(f"this change may not be made: {error}", reason="path") from error
        with contextlib.ExitStack() as stack:
            try:
                self._write_journal(journal)
                self._stage(changes, journal)
                self._prove(changes, remove)
                stack.enter_context(held())
                self._decide()
            except BaseException as error:
                with held():
                    self._take_back(journal, error)
                raise
            self.finish(journal)

    def _write_journal(self, journal: Journal) -> None:
        path = self.journal_path(PREPARE)
        fd = self.disk.create(path, 0o600, journal.dump())
        try:
            self.disk.flush(fd, path)
        finally:
            os.close(fd)
        self.disk.flush_directories([self.home])

    def _new_directories(self, changes: list[Change]) -> list[str]:
        made: list[str] = []
        for change in changes:
            if change.data is None:
                continue
            folder = parent(change.path)
            missing = []
            while folder and folder not in made and self.root.directory(folder) is None:
                missing.append(folder)
                folder = parent(folder)
            made.extend(reversed(missing))
        return made

    def _stage(self, changes: list[Change], journal: Journal) -> None:
        """Write every new file beside its target and flush it, and the directories that name it.

        Flushing comes after writing, in batches, so that the file system can commit many files at once.
        """
        for folder in journal.made:
            self.disk.make_directory(folder)
        new = [change for change in changes if change.data is not None]
        for start in range(0, len(new), _BATCH):
            open_files: list[tuple[int, str]] = []
            try:
                for change in new[start : start + _BATCH]:
                    open_files.append((self._stage_one(change), change.path))
                self.disk.flush_files(open_files)
            finally:
                for fd, _ in open_files:
                    os.close(fd)
        # Without this a power cut could keep the decision and lose the names of what it decides about.
        named = {parent(change.path) for change in new} | {parent(folder) for folder in journal.made}
        self.disk.flush_directories(named | {self.home})

    def _stage_one(self, change: Change) -> int:
        assert change.data is not None
        before, bits = change.before, change.mode
        if before is not None and bits is None:
            bits = before.mode
        own = None if before is None else (before.uid, before.gid)
        default = 0o777 if change.executable else 0o666
        return self.disk.create(temp_name(change.path), default, change.data, own, bits)

    def _prove(self, changes: list[Change], remove: list[str]) -> None:
        """Nothing may stop a decided change: find out now what could.  Raises :class:`TreeError`."""
        for change in changes:
            _unchanged(self.root, change)
            if change.before is not None:
                self._replaceable(change.path)
        for folder in {parent(path) for path in remove} | {parent(c.path) for c in changes if c.data is None}:
            fd = self.root.directory(folder)
            if fd is not None and not os.access(".", os.W_OK | os.X_OK, dir_fd=fd):
                raise OSError(errno.EACCES, "files in this directory may not be removed", folder)

    def _replaceable(self, path: str) -> None:
        """An immutable file lets itself be renamed over by nobody, though the directory can be written."""
        folder, name = self.root.split(path)
        assert folder is not None
        if os.access(name, os.W_OK, dir_fd=folder, follow_symlinks=False):
            return
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder))
        except PermissionError as error:
            if error.errno == errno.EPERM:
                raise OSError(errno.EPERM, "the file is immutable (chattr +i)", path) from error
        except OSError:
            pass  # a running program, for instance: it can be renamed over

    def _decide(self) -> None:
        """Rename the journal: from here on the change will be finished, whatever happens."""
        self.disk.rename(self.journal_path(PREPARE), self.journal_path(COMMIT), "committed")
        self.disk.flush_directories([self.home])

    def _take_back(self, journal: Journal, error: BaseException) -> None:
        """Undo what a failed run has prepared, and raise what ``error`` is for the user."""
        try:
            # When the decision's own flush failed nobody knows whether it would outlast a power cut; every new file is
            # still there, so it can be taken back.
            with contextlib.suppress(FileNotFoundError):
                self.disk.rename(self.journal_path(COMMIT), self.journal_path(PREPARE), "took back")
            self.roll_back(journal)
        except OSError as second:
            why = (
                f" ({error.strerror}{f': {error.filename}' if error.filename else ''})"
                if isinstance(error, OSError)
                else ""
            )
            raise _unfinished(
                f"the change failed{why}, and what it had prepared could not be removed", second
            ) from error
        if isinstance(error, OSError):
            raise TreeError(
                f"cannot write{f' {error.filename}' if error.filename else ''}: {error.strerror or error}",
                reason="write",
                file=error.filename,
                hint="nothing was changed; free space or permissions, then run it again",
            ) from error

    def roll_back(self, journal: Journal) -> None:
        """Remove what an undecided change has prepared.  Raises :class:`OSError`, after removing all it can."""
        failed: OSError | None = None
        touched = {self.home}
        for op in journal.ops:
            if op.after is None:
                continue
            try:
                self.disk.remove(temp_name(op.path))
                touched.add(parent(op.path))
            except (IsADirectoryError, TreeError):
                pass  # not what a run wrote there
            except OSError as error:
                failed = error
        for folder in reversed(journal.made):
            with contextlib.suppress(TreeError):
                self.disk.remove_directory(folder)
                touched.add(parent(folder))
        if failed is not None:
            raise failed
        with contextlib.suppress(TreeError):
            self.disk.flush_directories(touched)
        self.disk.remove(self.journal_path(PREPARE))

    def finish(self, journal: Journal) -> None:
        """Bring a decided change to its end; may be run any number of times."""
        try:
            with held():
                self._finish(journal)
        except OSError as error:
            raise _unfinished("the change is decided and not finished", error) from error

    def _finish(self, journal: Journal) -> None:
        emptied: set[str] = set()
        touched: set[str] = set()
        for op in journal.ops:
            touched.add(parent(op.path))
            if op.after is None:
                self.disk.remove(op.path)
                emptied.add(parent(op.path))
                continue
            try:
                self.disk.rename(temp_name(op.path), op.path, "done")
            except FileNotFoundError:
                self._is_done(op)
        for path in journal.remove:
            self.disk.remove(path)
            touched.add(parent(path))
            emptied.add(parent(path))
        touched |= self.prune(emptied)
        self.disk.flush_directories(touched)
        self.drop_decided()

    def _is_done(self, op: Op) -> None:
        """The run that was interrupted has renamed the new file; nothing else may have taken it away."""
        current = self.root.read(op.path)
        if current is None or current.sha256 != op.after:
            raise TreeError(
                "changed by someone else while a change was half done",
                reason="journal",
                file=op.path,
                hint="reinstall the distribution, then apply again",
            )

    def drop_decided(self) -> None:
        """Remove the journal of a change that is done."""
        self.disk.remove(self.journal_path(COMMIT))
        with contextlib.suppress(OSError):  # a journal that comes back after a power cut is finished once more
            self.disk.flush_directories([self.home])

    def prune(self, emptied: Iterable[str]) -> set[str]:
        """Remove directories that the deletions emptied, as git and GNU patch do; return the ones they were in."""
        above = set()
        for path in sorted(emptied, key=lambda p: -p.count("/")):
            while path and path != self.home and self.disk.remove_directory(path):
                path = parent(path)
                above.add(path)
        return above


def _unchanged(root: Root, change: Change) -> None:
    """The file must still be the one that was read: only other patchforge runs wait for the lock."""
    if change.before is None:
        same = not root.exists(change.path)
    else:
        same = change.before.stamp is None or change.before.stamp == root.stamp(change.path)
    if not same:
        raise TreeError(
            "the file was changed by someone else a moment ago; nothing was changed",
            reason="changed",
            file=change.path,
            hint="see that nothing else works on the tree, then run it again",
        )


def _unfinished(what: str, error: OSError) -> TreeError:
    return TreeError(
        f"{what}: {error.strerror or error}",
        reason="write",
        file=error.filename,
        hint="free space or permissions, then run any command that changes the tree: it deals with this first",
    )
