"""Writing a file of a project: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from patchforge.errors import Refused


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
