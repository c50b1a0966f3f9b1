"""The files of an opened tree, as planning reads them."""

from __future__ import annotations

from collections.abc import Callable

from patchforge.engine.model import FileState, Reader
from patchforge.tree.target import Target


def pristine_files(target: Target) -> Reader:
    """The files as they were before any series."""

    def read(path: str) -> FileState | None:
        found = target.pristine(path)
        return None if found is None else FileState.of(found.data, found.executable)

    return read


def pristine_data(target: Target) -> Callable[[str], bytes | None]:
    """The bytes of the files as they were before any series."""

    def read(path: str) -> bytes | None:
        found = target.pristine(path)
        return None if found is None else found.data

    return read


def current_files(target: Target) -> Reader:
    """The files as they are on disk."""

    def read(path: str) -> FileState | None:
        found = target.read(path)
        return None if found is None else FileState.of(found.data, found.executable)

    return read
