"""Reading files below a directory without following a symbolic link anywhere on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from patchforge.errors import TreeError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_HELD = 256
MAX_FILE = 512 * 1024 * 1024
Stamp = tuple[int, int, int]
"""Inode, size and time of change: equal for a file nobody touched."""


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A regular file as it was read; ``stamp`` is ``None`` for one that was computed."""

    data: bytes
    mode: int
    uid: int
    gid: int
    stamp: Stamp | None = field(default=None, compare=False)

    @property
    def executable(self) -> bool:
        """The owner's executable bit."""
        return bool(self.mode & 0o100)

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the content."""
        return hashlib.sha256(self.data).hexdigest()


class Root:
    """A base directory; every path given to it is relative and uses ``/``.  Nothing outside it is ever reached.

    The base itself may lie behind symbolic links; nothing below it may.  A descriptor it hands out is good until the next
    call that opens a directory.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        try:
            self._fds: dict[str, int] = {"": os.open(base, _DIRECTORY)}
        except OSError as error:
            raise TreeError(
                f"cannot open the tree {base}: {error.strerror}", reason="tree", hint="is it the right directory?"
            ) from error

    def close(self) -> None:
        """Close every directory held open."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def directory(self, path: str) -> int | None:
        """A descriptor of the directory ``path``; ``None`` when it does not exist.  Raises :class:`TreeError` for a link."""
        known = self._fds.get(path)
        if known is not None:
            return known
        parent, name = _parted(path)
        above = self.directory(parent)
        if above is None:
            return None
        try:
            fd = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise TreeError(
                    f"{path} is a symbolic link or not a directory",
                    reason="path",
                    hint="nothing is written through links",
                ) from error
            raise TreeError(f"cannot open {path}: {error.strerror}", reason="path") from error
        if len(self._fds) >= _HELD:
            # A process may hold about a thousand files; a series may touch more directories.
            self.forget(next(key for key in self._fds if key))
        self._fds[path] = fd
        return fd

    def forget(self, path: str) -> None:
        """Drop the descriptor of a directory that is about to be removed."""
        fd = self._fds.pop(path, None)
        if fd is not None:
            os.close(fd)

    def split(self, path: str) -> tuple[int | None, str]:
        """The descriptor of the directory of ``path`` and its last component."""
        parent, name = _parted(path)
        return self.directory(parent), name

    def read(self, path: str, limit: int = MAX_FILE) -> OnDisk | None:
        """Read a regular file; ``None`` when it does not exist.  Raises :class:`TreeError` for anything else there."""
        fd_dir, name = self.split(path)
        if fd_dir is None:
            return None
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=fd_dir)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise TreeError(
                    f"{path} is a symbolic link", reason="path", hint="nothing is written through links"
                ) from error
            raise TreeError(f"cannot read {path}: {error.strerror}", reason="path") from error
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise TreeError(f"{path} is not a regular file", reason="path")
            if info.st_size > limit:
                raise TreeError(f"{path} is larger than {limit >> 20} MiB", reason="path")
            pieces = []
            while chunk := os.read(fd, max(info.st_size + 1, 65536)):
                pieces.append(chunk)
                if len(chunk) == info.st_size:
                    break
        finally:
            os.close(fd)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return OnDisk(data, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, _stamp(info))

    def exists(self, path: str) -> bool:
        """True when something of any kind is there."""
        return self._stat(path) is not None

    def is_file(self, path: str) -> bool:
        """True when a regular file or a symbolic link is there: something that ``unlink`` removes."""
        info = self._stat(path)
        return info is not None and (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode))

    def stamp(self, path: str) -> Stamp | None:
        """What :class:`OnDisk` noted when the file was read, as it is now."""
        info = self._stat(path)
        return None if info is None else _stamp(info)

    def _stat(self, path: str) -> os.stat_result | None:
        folder, name = self.split(path)
        if folder is None:
            return None
        try:
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TreeError(f"cannot look at {path}: {error.strerror}", reason="path") from error


def _parted(path: str) -> tuple[str, str]:
    parent, slash, name = path.rpartition("/")
    if name in ("", ".", "..") or (slash and not parent):
        raise TreeError(f"{path!r} is not a path inside the tree", reason="path")
    return parent, name


def _stamp(info: os.stat_result) -> Stamp:
    return info.st_ino, info.st_size, info.st_mtime_ns
