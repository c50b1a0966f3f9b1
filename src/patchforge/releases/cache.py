"""Pinned wheels on disk: a cache by content, and unpacked trees."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from patchforge.errors import Refused
from patchforge.releases.pip import download
from patchforge.series.pin import Flavor, Pin, Wheel

Progress = Callable[[str, int, int], None]


def fetch(pin: Pin, flavor: Flavor, wheel: Wheel, cache: Path, say: Callable[[str], None] | None = None) -> Path:
    """The wheel file, from ``cache`` or through pip; its SHA-256 is checked every time.  Raises :class:`Refused`."""
    folder = cache / "wheels" / wheel.sha256
    file = folder / wheel.file
    if file.is_file():
        if _sha256(file) == wheel.sha256:
            return file
        file.unlink()  # damaged on disk: fetch it again
    if say is not None:
        say(f"fetching {wheel.file} through pip")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as temporary:
        got = download(flavor.distribution, pin.version, wheel, Path(temporary))
        have = _sha256(got)
        if have != wheel.sha256:
            raise Refused(
                f"{wheel.file} hashes to {have}, and the pin says {wheel.sha256}",
                reason="hash",
                hint="the file is not the pinned release: find out where it came from",
            )
        folder.mkdir(exist_ok=True)
        os.replace(got, file)
    return file


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unpack(wheel: Path, destination: Path, progress: Progress | None = None) -> None:
    """Unpack ``wheel`` as pip would install it, to ``destination``, which appears whole or not at all.

    Raises :class:`Refused` for an archive with an unsafe name, a link, or a ``.data`` directory, which only an installer
    can place.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{destination.name}-", dir=destination.parent))
    try:
        with zipfile.ZipFile(wheel) as archive:
            entries = archive.infolist()
            for number, entry in enumerate(entries):
                _check(entry, wheel)
                if progress is not None and number % 50 == 0:
                    progress("unpacking", number, len(entries))
                path = Path(archive.extract(entry, temporary))
                if not entry.is_dir() and (entry.external_attr >> 16) & 0o111:
                    path.chmod(path.stat().st_mode | 0o111)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        os.rename(temporary, destination)
    except (zipfile.BadZipFile, OSError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise Refused(
            f"cannot unpack {wheel.name}: {error}", reason="wheel", hint="free space or permissions?"
        ) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _check(entry: zipfile.ZipInfo, wheel: Path) -> None:
    parts = entry.filename.rstrip("/").split("/")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if entry.filename.startswith("/") or "\\" in entry.filename or {"", ".", ".."} & set(parts):
        raise Refused(f"{wheel.name} holds an unsafe name: {entry.filename!r}", reason="wheel")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(f"{wheel.name} holds a link or a device: {entry.filename!r}", reason="wheel")
    if parts[0].endswith(".data"):
        raise Refused(
            f"{wheel.name} has files outside the package ({parts[0]}): unpacking does not place them",
            reason="wheel",
            hint="install it with pip and use --python instead of --fetch",
        )
