"""The layer that puts patchforge itself, the project and the start into an image that has the engine only."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

from patchforge.errors import Refused
from patchforge.image import tool
from patchforge.image.layer import Entry, Layer, directory, file, make_layer, parents
from patchforge.image.requirements import RequirementLock
from patchforge.releases.many import download_all
from patchforge.series.imagepin import ImagePin
from patchforge.series.project import Series

HOME = "opt/patchforge"
USER = 65532
USER_HOME = "home/serve"
PROJECT = f"{HOME}/project"

_SCRIPT = """\
#!{python} -I
import sys

sys.path.insert(0, "/{home}/lib")

from patchforge.cli import main

main()
"""


def script(python: str) -> bytes:
    """The program ``patchforge``: run by the engine's interpreter, which therefore finds the engine by itself.

    Its own libraries lie apart, so that neither changes the other's; the engine is started as another process.
    """
    return _SCRIPT.format(python=python, home=HOME).encode()


def project_files(series: Series) -> dict[str, bytes]:
    """The project as the image holds it: pin, order, lock, patches; paths relative to its root."""
    assert series.pin is not None and series.project is not None
    base = series.project
    out = {}
    for name in ("pin.toml", "series", "lock.toml"):
        path = base / "series" / series.pin.id / name
        out[path.relative_to(base).as_posix()] = path.read_bytes()
    for patch in series.patches:
        out[patch.path.relative_to(base).as_posix()] = patch.data
    return out


def home_entries() -> list[Entry]:
    """The home of the user the container runs as."""
    return [directory("home"), Entry(USER_HOME, "dir", b"", 0o755, USER, USER)]


def project_layer(series: Series) -> Layer:
    """The layer with the project."""
    return make_layer("project", _filled({f"{PROJECT}/{path}": data for path, data in project_files(series).items()}))


def tool_layer(
    lock: RequirementLock, image: ImagePin, cache: Path, python: str, fresh: bool, say: Callable[[str], None]
) -> Layer:
    """The layer with patchforge and what it needs, every wheel proved by the lock's hashes.

    ``fresh`` uses nothing that an earlier build compressed.
    """
    found = {f"{HOME}/lib/{path}": data for path, data in tool.files().items()}
    for wheel in download_all(lock_rows(lock), image.minor, image.platform, image.glibc, cache, say):
        _unpack(wheel, found)
    entries = _filled(found) + home_entries()
    entries += [directory(f"{HOME}/bin"), file(f"{HOME}/bin/patchforge", script(python), executable=True)]
    return make_layer("patchforge", entries, None if fresh else cache / "packed")


def lock_rows(lock: RequirementLock) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Name, version and hashes of every requirement, in order of name."""
    return tuple((p.name, p.version, p.hashes) for _, p in sorted(lock.packages.items()))


def _unpack(wheel: Path, found: dict[str, bytes]) -> None:
    """Lay a wheel's modules and metadata below ``lib``; its scripts and headers are nobody's business there."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = entry.filename.split("/")
            if entry.is_dir():
                continue
            if parts[0].endswith(".data"):
                if len(parts) < 3 or parts[1] not in ("purelib", "platlib"):
                    continue
                parts = parts[2:]
            if entry.filename.startswith("/") or {"", ".", ".."} & set(parts):
                raise Refused(f"{wheel.name} holds an unsafe name: {entry.filename!r}", reason="wheel")
            found.setdefault(f"{HOME}/lib/{'/'.join(parts)}", archive.read(entry))


def _filled(found: dict[str, bytes]) -> list[Entry]:
    """The files and every directory above them."""
    folders = {folder for path in found for folder in parents(path)}
    return [directory(path) for path in sorted(folders)] + [file(path, data) for path, data in sorted(found.items())]
