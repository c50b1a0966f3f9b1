"""Reading the pristine files of a release out of its wheel, without unpacking it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path


def wheel_files(wheel: Path, root: str) -> Callable[[str], tuple[bytes, bool] | None]:
    """A function that gives content and executable bit of a file below ``root`` in ``wheel``, ``None`` where there is none."""
    archive = zipfile.ZipFile(wheel)

    def read(path: str) -> tuple[bytes, bool] | None:
        try:
            info = archive.getinfo(f"{root}/{path}")
        except KeyError:
            return None
        return archive.read(info), bool((info.external_attr >> 16) & 0o100)

    return read
