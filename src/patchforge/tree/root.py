"""Reading files below a directory without following a symbolic link anywhere on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import TreeError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
MAX_FILE = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A regular file as it was read."""

    data: bytes
    mode: int
    uid: int
    gid: int

    @property
    def executable(self) -> bool:
        """The owner's executable bit."""
        return bool(self.mode & 0o100)

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the content."""
        return hashlib.sha256(self.data).hexdigest()


class Root:
    """A base directory; every path given to it is relative, uses ``/``, and has been checked by the parser.

    The base itself may lie behind symbolic links; nothing below it may.
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
        """A descriptor of the directory ``path``; ``None`` when it does not exist.  Kept open until :meth:`close`."""
        known = self._fds.get(path)
        if known is not None:
            return known
        parent, _, name = path.rpartition("/")
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
            raise
        self._fds[path] = fd
        return fd

    def forget(self, path: str) -> None:
        """Drop the descriptor of a directory that is about to be removed."""
        fd = self._fds.pop(path, None)
        if fd is not None:
            os.close(fd)

    def directories(self) -> Iterator[tuple[str, int]]:
        """The directories opened so far."""
        return iter(list(self._fds.items()))

    def split(self, path: str) -> tuple[int | None, str]:
        """The descriptor of the directory of ``path`` and its last component."""
        parent, _, name = path.rpartition("/")
        return self.directory(parent), name

    def read(self, path: str) -> OnDisk | None:
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
            if info.st_size > MAX_FILE:
                raise TreeError(f"{path} is larger than {MAX_FILE >> 20} MiB", reason="path")
            pieces = []
            while chunk := os.read(fd, max(info.st_size + 1, 65536)):
                pieces.append(chunk)
                if len(chunk) == info.st_size:
                    break
        finally:
            os.close(fd)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return OnDisk(data, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)

    def exists(self, path: str) -> bool:
        """True when something of any kind is there."""
        fd_dir, name = self.split(path)
        if fd_dir is None:
            return False
        try:
            os.stat(name, dir_fd=fd_dir, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


def create(name: str, folder: int, mode: int) -> int:
    """Create a file that was not there.  One left over is not ours to read: it is removed, never followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except FileExistsError:
        os.unlink(name, dir_fd=folder)
        return os.open(name, flags, mode, dir_fd=folder)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte of ``data``."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
