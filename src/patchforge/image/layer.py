"""Layers: sorted entries in, the same bytes out, on every machine and on every day."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import Refused
from patchforge.series.files import replace_file

MTIME = 315532800
"""The time of every file, 1980-01-01: earlier ones break ZIP archives made inside the image."""
LEVEL = 9
_PROBE = b"patchforge codec probe\n" * 44
WHITEOUT = ".wh."


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry.  ``kind``: ``file``, ``dir``, ``link`` (symbolic, to ``target``) or ``gone`` (a whiteout).

    ``path`` is relative and has no trailing slash.
    """

    path: str
    kind: str
    data: bytes = b""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    """A finished layer: what it is, its compressed bytes, and the digests of both forms (``sha256:…``)."""

    owner: str
    blob: bytes
    digest: str
    diff_id: str
    tar_size: int
    entries: int


def directory(path: str, mode: int = 0o755) -> Entry:
    """A directory of root's."""
    return Entry(path, "dir", mode=mode)


def file(path: str, data: bytes, executable: bool = False) -> Entry:
    """A file of root's that everybody may read."""
    return Entry(path, "file", data, 0o755 if executable else 0o644)


def make_layer(owner: str, entries: Iterable[Entry], kept: Path | None = None) -> Layer:
    """Pack ``entries``, sorted by path; ``owner`` says in words whose layer it is.

    ``kept`` is a directory of layers compressed before: that of a large one takes seconds.

    Raises :class:`Refused` for a path given twice or one that is unsafe.
    """
    ordered = sorted(entries, key=_name)
    seen: set[str] = set()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:
        for entry in ordered:
            name = _name(entry)
            if name in seen:
                raise Refused(f"{name} would stand twice in one layer", reason="path")
            if name.startswith("/") or {"", ".", ".."} & set(name.split("/")):
                raise Refused(f"{name!r} is not a path inside an image", reason="path")
            seen.add(name)
            archive.addfile(_info(entry, name), io.BytesIO(entry.data))
    tar = packed.getvalue()
    blob = compress(tar) if kept is None else _kept(tar, kept)
    return Layer(owner, blob, digest_of(blob), digest_of(tar), len(tar), len(ordered))


def _name(entry: Entry) -> str:
    if entry.kind != "gone":
        return entry.path
    return whiteout(entry.path)


def whiteout(path: str) -> str:
    """The name under which a layer hides ``path`` of the layers below it."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{WHITEOUT}{name}"


def _info(entry: Entry, name: str) -> tarfile.TarInfo:
    """A header with nothing in it that the build's machine chose."""
    info = tarfile.TarInfo(name)
    info.mtime = MTIME
    info.uid, info.gid = entry.uid, entry.gid
    info.uname = info.gname = ""
    if entry.kind == "dir":
        info.type, info.mode = tarfile.DIRTYPE, entry.mode
    elif entry.kind == "link":
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.target, 0o777
    else:
        info.size, info.mode = len(entry.data), entry.mode
    return info


def compress(tar: bytes) -> bytes:
    """gzip with a fixed level, no name and no time."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=packed, mtime=0) as stream:
        stream.write(tar)
    return packed.getvalue()


def _kept(tar: bytes, folder: Path) -> bytes:
    """The compressed form that an earlier build kept, if it is this one's; else a new one, kept."""
    path = folder / f"{digest_of(tar + codec().encode())[7:]}.gz"
    try:
        blob = path.read_bytes()
        if gzip.decompress(blob) == tar:
            return blob
    except (OSError, EOFError, zlib.error):
        pass  # none, or damaged on disk
    blob = compress(tar)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, blob)
    return blob


def codec() -> str:
    """The compressor's name and release, and the hash of what it makes of a constant.

    Compressed digests are equal where this is; uncompressed ones (``diff_id``) always are.
    """
    return f"gzip-{LEVEL} zlib {zlib.ZLIB_RUNTIME_VERSION} probe {digest_of(compress(_PROBE))[7:19]}"


def digest_of(data: bytes) -> str:
    """``sha256:`` and the hexadecimal digest."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def parents(path: str) -> list[str]:
    """Every directory above ``path``, the topmost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]
