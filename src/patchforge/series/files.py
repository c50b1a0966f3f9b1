"""Reading and writing a file of a project: whole, or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from patchforge.errors import InputError, Refused

MAX_FILE = 64 * 1024 * 1024


def read_file(path: Path, label: str, reason: str) -> bytes | None:
    """The bytes of a regular file; ``None`` when there is none.  Raises :class:`InputError` for anything else there."""
    try:
        # Without O_NONBLOCK a pipe of that name would hold us for ever.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", reason=reason, file=label) from error
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise InputError("not a regular file", reason=reason, file=label)
        if info.st_size > MAX_FILE:
            raise InputError(f"larger than {MAX_FILE >> 20} MiB", reason=reason, file=label)
        with os.fdopen(os.dup(fd), "rb") as stream:
            return stream.read()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", reason=reason, file=label) from error
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes) -> None:
    """Write ``data`` beside ``path`` and rename it over.  Raises :class:`Refused` with nothing changed."""
    try:
        fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(fd, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~umask)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise Refused(f"cannot write: {error.strerror}", reason="write", file=str(path)) from error
