"""The system calls that change the disk, one method each, so that every failure names its path and none escapes a test."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from patchforge.tree.root import Root

Hook = Callable[[str], None]
_THREADS = 4
_STAYS = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY, errno.EACCES, errno.EPERM)


def _nothing(_: str) -> None:
    return None


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Give an :class:`OSError` the path below the root; the calls only know the last component."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from error


class Disk:
    """Changes below ``root``.  ``hook`` is called after each of them, with a word on what was done."""

    def __init__(self, root: Root, hook: Hook | None = None) -> None:
        self.root = root
        self.hook = hook or _nothing
        self._created: set[tuple[int, int]] = set()

    def _at(self, path: str) -> tuple[int, str]:
        folder, name = self.root.split(path)
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return folder, name

    def create(
        self, path: str, mode: int, data: bytes, own: tuple[int, int] | None = None, bits: int | None = None
    ) -> int:
        """Create a file and write it; return its descriptor, not yet flushed.

        ``own`` is its user and group, ``bits`` its permission bits; ``None`` leaves what the process gives.  A file left over
        under this name is not ours to read: it is removed, never followed.
        """
        with _named(path):
            folder, name = self._at(path)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            # Nobody else reads it before it has its own bits.
            first = mode if bits is None else 0o600
            try:
                fd = os.open(name, flags, first, dir_fd=folder)
            except FileExistsError:
                there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if (there.st_dev, there.st_ino) in self._created:
                    # Removing it would lose the file that was written a moment ago.
                    raise FileExistsError(errno.EEXIST, "another file of the series has this name here") from None
                os.unlink(name, dir_fd=folder)
                self.hook(f"removed {path}")
                fd = os.open(name, flags, first, dir_fd=folder)
            try:
                self.hook(f"created {path}")
                info = os.fstat(fd)
                self._created.add((info.st_dev, info.st_ino))
                if own is not None and own != (info.st_uid, info.st_gid):
                    os.fchown(fd, *own)
                    self.hook(f"owned {path}")
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                    self.hook(f"wrote {path}")
                # Last, because a change of owner and a write clear the set-user-id bit.
                if bits is not None:
                    os.fchmod(fd, bits)
                    self.hook(f"permitted {path}")
            except BaseException:
                os.close(fd)
                raise
            return fd

    def flush(self, fd: int, path: str) -> None:
        """Flush one file."""
        with _named(path):
            os.fsync(fd)
        self.hook(f"flushed {path}")

    def flush_files(self, files: list[tuple[int, str]]) -> None:
        """Flush many files.  In parallel, because a file system commits together what is asked for at once."""
        if len(files) < 2 * _THREADS:
            for fd, path in files:
                self.flush(fd, path)
            return
        import threading

        failed: list[tuple[str, OSError]] = []

        def work(part: list[tuple[int, str]]) -> None:
            for fd, path in part:
                try:
                    os.fsync(fd)
                except OSError as error:
                    failed.append((path, error))

        threads = []
        try:
            for number in range(_THREADS):
                part = files[number::_THREADS]
                thread = threading.Thread(target=work, args=(part,))
                try:
                    thread.start()
                    threads.append(thread)
                except RuntimeError:  # no more threads to be had
                    work(part)
        finally:
            # The caller closes the files, whatever interrupts us: nobody may be at work on them then.
            for thread in threads:
                thread.join()
        for path, error in failed:
            with _named(path):
                raise error
        for _, path in files:
            self.hook(f"flushed {path}")

    def flush_directories(self, paths: Iterable[str]) -> None:
        """Flush the names in the directories ``paths``; those that are gone need none."""
        for path in sorted(paths):
            with _named(path or "."):
                fd = self.root.directory(path)
                if fd is None:
                    continue
                try:
                    os.fsync(fd)
                except OSError as error:
                    if error.errno != errno.EINVAL:  # a file system that cannot flush a directory
                        raise
            self.hook(f"flushed {path or '.'}")

    def make_directory(self, path: str) -> None:
        """Create a directory."""
        with _named(path):
            folder, name = self._at(path)
            os.mkdir(name, 0o777, dir_fd=folder)
        self.hook(f"made {path}")

    def rename(self, old: str, new: str, word: str) -> None:
        """Rename a file over another of the same directory."""
        with _named(new):
            folder, name = self._at(old)
            os.rename(name, new.rpartition("/")[2], src_dir_fd=folder, dst_dir_fd=folder)
        self.hook(f"{word} {new}")

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone is fine."""
        with _named(path):
            try:
                folder, name = self._at(path)
                os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                return
            except OSError:
                if self.root.exists(path):
                    raise
                return  # a read-only file system refuses to remove even what is not there
        self.hook(f"removed {path}")

    def remove_directory(self, path: str) -> bool:
        """Remove a directory when it is empty and may be removed; ``False`` when it stays."""
        with _named(path):
            folder, name = self.root.split(path)
            if folder is None:
                return True
            self.root.forget(path)
            try:
                os.rmdir(name, dir_fd=folder)
            except FileNotFoundError:
                return True
            except OSError as error:
                if error.errno in _STAYS:
                    return False
                raise
        self.hook(f"unmade {path}")
        return True
