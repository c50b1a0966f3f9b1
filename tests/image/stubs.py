"""Bases made up for the tests, by another writer than the one under test: a layout of plain tar files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def member(name: str, data: bytes = b"", **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a layer; ``more`` sets fields of its header."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), 0o644, 1_700_000_000
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def folder(name: str, mode: int = 0o755, uid: int = 0) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.DIRTYPE, mode=mode, uid=uid, gid=uid)


def tar_of(members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


class Layout:
    """A layout under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "blobs/sha256").mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        (self.path / "blobs/sha256" / digest).write_bytes(data)
        return f"sha256:{digest}"

    def image(self, tars: list[bytes], *, gz: bool = True, architecture: str = "amd64", **config: Any) -> str:
        """Write an image of ``tars``; return its manifest's digest."""
        layers = []
        for tar in tars:
            blob = gzip.compress(tar, 1, mtime=0) if gz else tar
            layers.append({"mediaType": LAYER + ("+gzip" if gz else ""), "digest": self.put(blob), "size": len(blob)})
        document = {
            "os": "linux",
            "architecture": architecture,
            "created": "2026-01-01T00:00:00Z",
            "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"], "Cmd": ["python3"], **config},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(t).hexdigest()}" for t in tars]},
            "history": [{"created": "2026-01-01T00:00:00Z", "created_by": f"stub {n}"} for n in range(len(tars))],
        }
        raw = json.dumps(document).encode()
        entry = {"mediaType": CONFIG, "digest": self.put(raw), "size": len(raw)}
        manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": entry, "layers": layers}).encode()
        digest = self.put(manifest)
        self.index([{"mediaType": MANIFEST, "digest": digest, "size": len(manifest)}])
        return digest

    def index(self, entries: list[dict[str, Any]]) -> None:
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": entries}))


def installed_tar(wheel: Path, site: str, python: str, *, owner: int = 0) -> bytes:
    """A layer with an interpreter that is none and ``wheel`` as pip installs it, INSTALLER and RECORD included."""
    parts = site.split("/")
    members = [folder("/".join(parts[: n + 1])) for n in range(len(parts))]
    top = site.partition("/lib/")[0]
    members += [folder(f"{top}/bin"), member(f"{top}/bin/{python}", b"#!/bin/sh\n", mode=0o755)]
    made: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.is_dir():
                continue
            folders = entry.filename.split("/")[:-1]
            for n in range(len(folders)):
                path = "/".join(folders[: n + 1])
                if path not in made:
                    made.add(path)
                    members.append(folder(f"{site}/{path}", uid=owner))
            data = archive.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                info = entry.filename.rpartition("/")[0]
                data = (
                    data.rstrip(b"\n")
                    + f"\n{info}/INSTALLER,sha256=zuuue4knoyJ-UwPPXg8fezS7VCrXJQrAP7zeNuwvFQg,4\n".encode()
                )
                members.append(member(f"{site}/{info}/INSTALLER", b"pip\n", uid=owner, gid=owner))
            mode = 0o755 if (entry.external_attr >> 16) & 0o111 else 0o644
            members.append(member(f"{site}/{entry.filename}", data, mode=mode, uid=owner, gid=owner))
    return tar_of(members)
