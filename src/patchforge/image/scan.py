"""What the layers of a base hold, seen together: which files, of what mode, with which hash."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchforge.errors import Refused
from patchforge.image.layer import WHITEOUT
from patchforge.image.layout import Base, Blob, compression
from patchforge.series.files import replace_file

SCHEMA = 1
_OPAQUE = ".wh..wh..opq"
_KEEP = 8 << 20
_CHUNK = 1 << 20
_MOST = 4_000_000
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Node:
    """One path of an image.  ``kind``: ``file``, ``dir``, ``link`` or ``other``; ``data`` is kept for metadata alone."""

    kind: str
    mode: int
    uid: int
    gid: int
    sha256: str = ""
    target: str = ""
    data: bytes | None = None


def scan(base: Base, cache: Path | None, progress: Progress | None = None) -> dict[str, Node]:
    """Every path of ``base`` after all its layers, without leading slash.

    Each layer is read and proved once and remembered in ``cache`` under its digest.  Raises :class:`Refused` for a layer
    that does not hash to its name, or that no safe image holds.
    """
    seen: dict[str, Node] = {}
    for number, blob in enumerate(base.layers):
        if progress is not None:
            progress("reading the base", number, len(base.layers))
        _merge(seen, _remembered(base, blob, base.config["rootfs"]["diff_ids"][number], cache))
    return seen


def _merge(seen: dict[str, Node], layer: dict[str, Node]) -> None:
    """Put a layer over what lies below it; its whiteouts take away only that."""
    for path in layer:
        folder, _, name = path.rpartition("/")
        if name == _OPAQUE:
            _drop_below(seen, folder)
        elif name.startswith(WHITEOUT):
            hidden = f"{folder}/{name[len(WHITEOUT) :]}" if folder else name[len(WHITEOUT) :]
            seen.pop(hidden, None)
            _drop_below(seen, hidden)
    for path, node in layer.items():
        if path.rpartition("/")[2].startswith(WHITEOUT):
            continue
        old = seen.get(path)
        if old is not None and old.kind == "dir" and node.kind != "dir":
            _drop_below(seen, path)
        seen[path] = node


def _drop_below(seen: dict[str, Node], folder: str) -> None:
    start = f"{folder}/" if folder else ""
    for path in [p for p in seen if p.startswith(start)]:
        del seen[path]


def _remembered(base: Base, blob: Blob, diff_id: str, cache: Path | None) -> dict[str, Node]:
    note = None if cache is None else cache / "layers" / f"{blob.digest.partition(':')[2]}.{SCHEMA}.json"
    if note is not None and note.is_file():
        try:
            return _load(note.read_bytes(), diff_id)
        except (ValueError, KeyError, TypeError):
            pass  # damaged on disk: read the layer again
    found = read_layer(base.path(blob), blob, diff_id)
    if note is not None:
        note.parent.mkdir(parents=True, exist_ok=True)
        replace_file(note, _dump(found, diff_id))
    return found


class _Hashing:
    """A stream that hashes all that is read from it."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.total = raw, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes."""
        data: bytes = self.raw.read(size)
        self.total.update(data)
        return data

    @property
    def digest(self) -> str:
        """``sha256:…`` of everything, after reading what is left."""
        while self.read(_CHUNK):
            pass
        return f"sha256:{self.total.hexdigest()}"


def read_layer(
    path: Path, blob: Blob, diff_id: str, keep: Callable[[str], bool] = lambda name: False
) -> dict[str, Node]:
    """The entries of a layer by path, whiteouts under their own names; both its hashes are proved.

    The content of metadata is kept, and of the files that ``keep`` names.
    """

    def corrupt(why: str) -> Refused:
        return Refused(f"a layer of the base: {why}", reason="base-corrupt", file=str(path))

    found: dict[str, Node] = {}
    try:
        with path.open("rb") as raw:
            outer = _Hashing(raw)
            plain = gzip.GzipFile(fileobj=outer) if compression(blob) == "gzip" else outer  # type: ignore[call-overload]
            inner = _Hashing(plain)
            with tarfile.open(fileobj=inner, mode="r|", bufsize=_CHUNK, errors="surrogateescape") as archive:  # type: ignore[call-overload]
                for name, node in _nodes(archive, found, keep):
                    found[name] = node
                    if len(found) > _MOST:
                        raise ValueError(f"more than {_MOST} entries")
            have, digest = inner.digest, outer.digest
    except (OSError, tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise corrupt(f"{type(error).__name__}: {error}") from error
    if digest != blob.digest:
        raise corrupt("it does not hash to its name")
    if have != diff_id:
        raise corrupt("its content does not hash to its diff_id")
    return found


def _nodes(archive: tarfile.TarFile, found: dict[str, Node], keep: Callable[[str], bool]) -> Iterator[tuple[str, Node]]:
    for info in archive:
        name = info.name.removeprefix("./").strip("/")
        if name in ("", "."):
            continue
        if ".." in name.split("/"):
            raise ValueError(f"{info.name!r} leaves the image")
        mode, uid, gid = info.mode & 0o7777, info.uid, info.gid
        if info.isfile():
            kept = (".dist-info/" in name or keep(name)) and info.size <= _KEEP
            yield name, _file(archive, info, (mode, uid, gid), kept)
        elif info.isdir():
            yield name, Node("dir", mode, uid, gid)
        elif info.issym():
            yield name, Node("link", mode, uid, gid, target=info.linkname)
        elif info.islnk():
            first = info.linkname.removeprefix("./").strip("/")
            # A hard link to a file of a lower layer cannot be told from here: it proves nothing about its content.
            yield name, found.get(first, Node("other", mode, uid, gid))
        else:
            yield name, Node("other", mode, uid, gid)


def _file(archive: tarfile.TarFile, info: tarfile.TarInfo, own: tuple[int, int, int], keep: bool) -> Node:
    stream = archive.extractfile(info)
    assert stream is not None
    total, kept = hashlib.sha256(), []
    while piece := stream.read(_CHUNK):
        total.update(piece)
        if keep:
            kept.append(piece)
    return Node("file", *own, sha256=total.hexdigest(), data=b"".join(kept) if keep else None)


def _dump(found: dict[str, Node], diff_id: str) -> bytes:
    rows: list[list[Any]] = []
    for path, n in found.items():
        data = None if n.data is None else base64.b64encode(zlib.compress(n.data, 6)).decode()
        rows.append([path, n.kind, n.mode, n.uid, n.gid, n.sha256, n.target, data])
    return json.dumps({"diff_id": diff_id, "entries": rows}).encode()


def _load(raw: bytes, diff_id: str) -> dict[str, Node]:
    document = json.loads(raw)
    if document["diff_id"] != diff_id:
        raise ValueError("another layer")
    out = {}
    for path, kind, mode, uid, gid, sha256, target, data in document["entries"]:
        kept = None if data is None else zlib.decompress(base64.b64decode(data))
        out[path] = Node(kind, mode, uid, gid, sha256, target, kept)
    return out
