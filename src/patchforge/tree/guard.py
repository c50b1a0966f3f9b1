"""One writer at a time: an advisory lock on the directory itself, so that no lock file is left behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from patchforge.errors import TreeError


@contextmanager
def exclusive(directory: Path, waiting: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock of ``directory``.  ``waiting`` is called once, with a message, when another process holds it."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise TreeError(f"cannot open {directory}: {error.strerror}", reason="tree") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting(f"waiting for another patchforge that is at work in {directory}")
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as error:
            raise TreeError(
                f"cannot lock {directory}: {error.strerror}", reason="tree", hint="the file system has no locks"
            ) from error
        yield
    finally:
        os.close(fd)
