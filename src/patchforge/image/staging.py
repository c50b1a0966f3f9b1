"""Building beside the place, then one rename: what is there is whole, and a killed build leaves nothing that looks so."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patchforge.errors import InputError, Refused
from patchforge.tree.guard import exclusive

MARK = ".patchforge-image"
"""A file in every directory written here; only such a directory is ever replaced."""


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A new directory that becomes ``target`` when the block ends well, and is removed when it does not.

    Raises :class:`InputError` when something stands at ``target`` that no build made, :class:`Refused` for a disk that will not.
    """
    target = target.absolute()
    if target.is_symlink() or (target.exists() and not _ours(target)):
        raise InputError(
            "something that no build made stands here",
            reason="exists",
            file=str(target),
            hint="name an empty or a new directory with --out",
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(target.parent):
            for left in target.parent.glob(f".{target.name}-*.partial"):
                shutil.rmtree(left, ignore_errors=True)  # of a run that was killed: nobody else holds the lock
            work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=".partial", dir=target.parent))
            try:
                yield work
                (work / MARK).write_bytes(b"")
                _settle(work)
                _put(work, target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise Refused(
            f"cannot write: {error.strerror or error}",
            reason="write",
            file=error.filename or str(target),
            hint="nothing was left there; free space or permissions, then run it again",
        ) from error


def _ours(target: Path) -> bool:
    return target.is_dir() and ((target / MARK).is_file() or not any(target.iterdir()))


def _settle(work: Path) -> None:
    """Everybody may read the result, and it is on the disk before it has its name."""
    umask = os.umask(0)
    os.umask(umask)
    work.chmod(0o777 & ~umask)
    for path in work.rglob("*"):
        if path.is_file() and not path.is_symlink():
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _put(work: Path, target: Path) -> None:
    """Give the finished directory its name; the one it replaces goes first, and only after the new one is whole."""
    old = work.with_name(work.name.replace(".partial", "-old.partial"))
    if target.exists():
        os.rename(target, old)
    os.rename(work, target)
    shutil.rmtree(old, ignore_errors=True)
