"""What a series is applied to: an installed distribution with its RECORD, or a bare directory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from patchforge.errors import TreeError
from patchforge.tree.disk import Hook
from patchforge.tree.guard import exclusive
from patchforge.tree.locate import Installed
from patchforge.tree.record import Record, to_record, undo_edits
from patchforge.tree.recovery import pending, recover
from patchforge.tree.root import OnDisk, Root
from patchforge.tree.state import State, TouchedFile, read_state
from patchforge.tree.transaction import Transaction


@dataclass
class Target:
    """An opened tree.  Patch paths are relative to ``prefix`` below ``root``; ``info`` is ``None`` for a bare tree."""

    root: Root
    prefix: str
    info: str | None
    label: str
    distribution: str = ""
    version: str = ""
    state: State | None = None
    recovered: str | None = None
    reinstalled: bool = False
    hook: Hook | None = None
    _reads: dict[str, OnDisk | None] = field(default_factory=dict)

    @property
    def home(self) -> str:
        """Where the journal lies: the dist-info, or the tree itself."""
        return self.info or ""

    def full(self, path: str) -> str:
        """``path`` relative to the root."""
        return f"{self.prefix}/{path}" if self.prefix else path

    def read(self, path: str) -> OnDisk | None:
        """The file at ``path`` as it is on disk; read once."""
        if path not in self._reads:
            self._reads[path] = self.root.read(self.full(path))
        return self._reads[path]

    def forget(self, path: str) -> None:
        """Let go of what was read of ``path``; for those who read a whole tree."""
        self._reads.pop(path, None)

    def pristine(self, path: str) -> OnDisk | None:
        """The file as it was before any series: undone from the state where a series is applied.

        Raises :class:`TreeError` (reason ``altered``) when the file on disk is not what the state says.
        """
        current = self.read(path)
        touched = self.state.file(path) if self.state else None
        return current if touched is None else undone(path, current, touched)

    def record(self) -> Record:
        """RECORD as it is on disk."""
        assert self.info is not None
        found = self.root.read(f"{self.info}/RECORD")
        if found is None:
            raise TreeError(f"{self.info} has no RECORD", reason="tree", hint="reinstall the distribution")
        return Record(found.data)

    def pristine_record(self) -> Record:
        """RECORD as the installer wrote it."""
        record = self.record()
        if self.state is None:
            return record
        data = undo_edits(record.data, list(self.state.record))
        if hashlib.sha256(data).hexdigest() != self.state.record_before:
            raise TreeError(
                "RECORD was changed after the series was applied",
                reason="altered",
                file=f"{self.info}/RECORD",
                hint="reinstall the distribution, then apply again",
            )
        return Record(data)

    def foreign(self, paths: list[str]) -> list[tuple[str, str]]:
        """The files of ``paths`` whose pristine bytes are not those RECORD lists: ``(path, what is wrong)``."""
        if self.info is None:
            return []
        rows = self.pristine_record().find({self.full(path) for path in paths})
        wrong = []
        for path in paths:
            state = self.pristine(path)
            row = rows.get(self.full(path))
            if state is None:
                if row is not None:
                    wrong.append((path, "RECORD lists it, and it is missing"))
            elif row is None:
                wrong.append((path, "RECORD does not list it"))
            elif not row.hash.startswith("sha256="):
                wrong.append((path, "RECORD has no sha256 of it, so nothing proves what was installed"))
            elif to_record(state.sha256) != row.hash:
                wrong.append((path, "its bytes are not those that were installed"))
        return wrong

    def transaction(self) -> Transaction:
        """A transaction on this tree."""
        return Transaction(self.root, self.home, self.hook, self.prefix)

    def refresh(self) -> None:
        """Forget what was read: the tree was changed."""
        self._reads.clear()
        self.load_state()

    def load_state(self) -> None:
        """Read the state file.  One left behind by a reinstallation, which restores RECORD, says nothing any more."""
        self.state = read_state(self.root, self.info) if self.info else None
        self.reinstalled = False
        if self.state is not None and hashlib.sha256(self.record().data).hexdigest() == self.state.record_before:
            self.state, self.reinstalled = None, True


def undone(path: str, current: OnDisk | None, touched: TouchedFile) -> OnDisk | None:
    """The pristine file of ``path``, from what is on disk; proved by its hash."""
    have = current.sha256 if current else None
    if have != touched.after:
        raise TreeError(
            f"{path} was {'removed' if current is None else 'changed'} after the series was applied",
            reason="altered",
            file=path,
            hint="'patchforge status' shows every such file; reinstall the distribution, then apply again",
        )
    if touched.before is None:
        return None
    data = touched.undo.apply(current.data if current else None)
    if hashlib.sha256(data).hexdigest() != touched.before:
        raise TreeError(f"{path} cannot be undone: the state file is damaged", reason="state", file=path)
    mode = touched.mode if touched.mode is not None else current.mode if current else 0o644
    uid, gid = (current.uid, current.gid) if current else (-1, -1)
    return OnDisk(data, mode, uid, gid)


@contextmanager
def open_installed(
    installed: Installed,
    prefix: str,
    write: bool,
    waiting: Callable[[str], None] | None = None,
    hook: Hook | None = None,
) -> Iterator[Target]:
    """Open an installed distribution; with ``write``, hold its lock and bring an interrupted run to its end first."""
    root = Root(installed.site)
    with root:
        label = str(installed.site / prefix)
        target = Target(root, prefix, installed.info, label, installed.distribution, installed.version, hook=hook)
        with _held(target, installed.site / installed.info, write, waiting):
            target.load_state()
            yield target


@contextmanager
def open_bare(
    directory: Path, write: bool, waiting: Callable[[str], None] | None = None, hook: Hook | None = None
) -> Iterator[Target]:
    """Open a directory with no metadata."""
    root = Root(directory)
    with root:
        target = Target(root, "", None, str(directory), hook=hook)
        with _held(target, directory, write, waiting):
            yield target


@contextmanager
def _held(target: Target, lock: Path, write: bool, waiting: Callable[[str], None] | None) -> Iterator[None]:
    if not write:
        left = pending(target.transaction())
        if left:
            target.recovered = f"an interrupted run left its journal ({left}): run 'patchforge apply' or 'revert' first"
        yield
        return
    with exclusive(lock, waiting):
        target.recovered = recover(target.transaction())
        yield
