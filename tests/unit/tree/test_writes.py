"""The layer that writes, and the lock: what a file system may say to them."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from patchforge.errors import TreeError
from patchforge.tree.disk import Disk
from patchforge.tree.guard import exclusive
from patchforge.tree.root import Root
from patchforge.tree.transaction import Change, Transaction, with_executable
from trees import snapshot


def test_a_file_left_over_is_replaced_and_one_of_this_run_is_not(tmp_path: Path) -> None:
    """On a file system that folds case, two names of a series may be one file: the first may not vanish silently."""
    (tmp_path / "it").write_bytes(b"left over")
    with Root(tmp_path) as root:
        disk = Disk(root)
        os.close(disk.create("it", 0o666, b"ours"))
        assert (tmp_path / "it").read_bytes() == b"ours"
        with pytest.raises(FileExistsError, match="another file of the series has this name"):
            disk.create("it", 0o666, b"ours too")
    assert (tmp_path / "it").read_bytes() == b"ours"


def test_a_file_system_that_cannot_flush_directories_is_none_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fsync(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with Root(tmp_path) as root:
        Transaction(root, "").run([Change("a/b", None, b"x")], [], "test")
    assert (tmp_path / "a/b").read_bytes() == b"x"
    assert set(snapshot(tmp_path)) == {"a", "a/b"}


@pytest.mark.parametrize("path", ["../x", "a/.git/x", "a.dist-info/RECORD", "x.pyc", "a//b", ""])
def test_a_change_that_a_journal_could_not_hold_is_not_begun(tmp_path: Path, path: str) -> None:
    with Root(tmp_path) as root, pytest.raises(TreeError):
        Transaction(root, "").run([Change(path, None, b"x")], [], "test")
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    ("mode", "on", "expected"),
    [
        (0o644, True, 0o755),
        (0o640, True, 0o750),
        (0o600, True, 0o700),
        (0o755, True, 0o755),
        (0o755, False, 0o644),
        (0o744, False, 0o644),
        (0o4755, False, 0o4644),
    ],
)
def test_the_executable_bits_follow_those_to_read(mode: int, on: bool, expected: int) -> None:
    assert with_executable(mode, on) == expected


def test_the_lock_waits_says_so_once_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    real, asked = fcntl.flock, []

    def flock(fd: int, how: int) -> None:
        asked.append(how)
        if how & fcntl.LOCK_NB:
            real(fd, how)
        # Waiting for real would wait for ever: the other holder is this process.

    monkeypatch.setattr(fcntl, "flock", flock)
    with exclusive(tmp_path, told.append):
        assert told == []
        with exclusive(tmp_path, told.append):
            assert told == [f"waiting for another patchforge that is at work in {tmp_path}"]
    assert asked == [fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX]
    assert snapshot(tmp_path) == {}
    with exclusive(tmp_path, told.append):
        assert len(told) == 1


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF])
def test_a_file_system_without_locks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def flock(fd: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(TreeError, match="cannot lock"), exclusive(tmp_path):
        pass


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_directory_that_cannot_be_locked_is_said(tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (tmp_path / "it").write_bytes(b"")
    with pytest.raises(TreeError, match="cannot open"), exclusive(tmp_path / "it"):
        pass


def test_a_second_interrupt_while_clearing_up_leaves_the_journal(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with Root(tmp_path) as root:
        before = root.read("a")
        seen: list[str] = []

        def hook(step: str) -> None:
            seen.append(step)
            if step == "flushed a" or step.startswith("removed"):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Transaction(root, "", hook).run([Change("a", before, b"new"), Change("b", None, b"x")], [], "test")
        assert (tmp_path / ".patchforge-prepare").exists()
        from patchforge.tree.recovery import recover

        assert recover(Transaction(root, "")) == "an interrupted run was rolled back: test"
    assert snapshot(tmp_path) == {"a": ("file", 0o644, b"old")}
