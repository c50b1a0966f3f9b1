"""Reading a small layer back, whole: what was written is looked at before it is called finished."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from patchforge.errors import Refused
from patchforge.image.layer import digest_of
from patchforge.image.layout import blob_path

_KINDS = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "dir", tarfile.SYMTYPE: "link"}


def read_back(layout: Path, digest: str, diff_id: str) -> dict[str, tuple[str, bytes]]:
    """``path: (kind, data)`` of a gzip layer, whiteouts under their own names.  Raises :class:`Refused` (``base-corrupt``)."""
    blob = blob_path(layout, digest).read_bytes()
    tar = gzip.decompress(blob)
    if digest_of(blob) != digest or digest_of(tar) != diff_id:
        raise Refused("a layer just written does not hash to its name: the disk?", reason="base-corrupt")
    out = {}
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for info in archive:
            stream = archive.extractfile(info) if info.isfile() else None
            out[info.name] = (_KINDS.get(info.type, "other"), b"" if stream is None else stream.read())
    return out
