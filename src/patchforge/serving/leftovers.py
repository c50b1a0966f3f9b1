"""Removing shared-memory files that a dead engine left, and none that a living one uses.

Looking through ``/proc`` is not enough: containers that share ``/dev/shm`` do not see each other's processes.  The kernel is
asked instead: a write lease on a file is granted only while nobody else, in any namespace, has it open or mapped.
"""

from __future__ import annotations

import fcntl
import glob
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

IN_USE = "in use"


@dataclass(frozen=True, slots=True)
class Leftover:
    """One file: its path and size in bytes, and whether it was ``removed``; ``why`` says what kept it."""

    path: str
    size: int
    removed: bool
    why: str = ""


def remove_leftovers(patterns: Iterable[str]) -> list[Leftover]:
    """Remove what matches ``patterns``, is a regular file of this user, and is used by nobody."""
    paths = sorted({path for pattern in patterns for path in glob.glob(pattern)})
    return [found for path in paths if (found := _remove(path)) is not None]


def _remove(path: str) -> Leftover | None:
    """``None`` for what is not ours to look at."""
    try:
        # Not blocking: a pipe of that name would wait for a writer for ever.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return None
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            return Leftover(path, found.st_size, False, IN_USE)
        except OSError as error:
            return Leftover(path, found.st_size, False, f"it cannot be told whether it is in use: {error.strerror}")
        # Whoever opens it now waits until the lease is gone, and then finds no file.
        try:
            os.unlink(path)
        except OSError as error:
            return Leftover(path, found.st_size, False, error.strerror or "")
        return Leftover(path, found.st_size, True)
    finally:
        os.close(fd)
