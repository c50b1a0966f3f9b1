"""What a build leaves beside the image: its digests in files, its layers, the bill of materials, where it comes from."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patchforge.image.checks import Inputs
from patchforge.image.context import EXECUTABLE, manifests
from patchforge.image.layer import digest_of, parents
from patchforge.image.layout import read_base
from patchforge.image.native import Built
from patchforge.image.provenance import make_provenance
from patchforge.image.sbom import make_sbom
from patchforge.image.toollayer import lock_rows
from patchforge.releases.many import download_all


@dataclass(frozen=True, slots=True)
class LayerLine:
    """One layer of the finished image, as reports show it; sizes in bytes."""

    owner: str
    digest: str
    diff_id: str
    size: int


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write ``files`` below ``folder``."""
    for path, data in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        for above in parents(path):
            (folder / above).chmod(0o755)  # a builder copies the modes: they may not depend on the umask
        place.write_bytes(data)
        place.chmod(0o755 if path in EXECUTABLE else 0o644)


def link_wheels(folder: Path, inputs: Inputs, cache: Path, say: Callable[[str], None]) -> None:
    """Lay every locked wheel, fetched through pip and proved by its hash, below ``folder``; by hard link where possible."""
    folder.mkdir(parents=True, exist_ok=True)
    image = inputs.image
    for lock in (inputs.engine, inputs.tool):
        for wheel in download_all(lock_rows(lock), image.minor, image.platform, image.glibc, cache, say):
            target = folder / wheel.name
            if target.exists():
                continue
            try:
                os.link(wheel, target)
            except OSError:
                shutil.copyfile(wheel, target)
            target.chmod(0o644)


def context_digest(files: Mapping[str, bytes]) -> str:
    """One hash over path and content of every file of a context; its wheels are known by the locks' hashes."""
    lines = (f"{digest_of(data)} {path}\n" for path, data in sorted(files.items()))
    return digest_of("".join(lines).encode())


def image_layers(layout: Path, platform: str, built: Built | None) -> tuple[str, str, tuple[LayerLine, ...]]:
    """Manifest digest, configuration digest and layers of the only image of ``layout``."""
    image = read_base(layout, None, platform)
    own = {} if built is None else {layer.digest: layer.owner for layer in built.layers}
    lines = tuple(
        LayerLine(own.get(blob.digest, "base" if built is not None else ""), blob.digest, diff_id, blob.size)
        for blob, diff_id in zip(image.layers, image.config["rootfs"]["diff_ids"], strict=True)
    )
    return image.digest, image.manifest["config"]["digest"], lines


def write_image_files(
    work: Path, inputs: Inputs, backend: str, name: str, queue: str, started: datetime, built: Built | None
) -> tuple[str, str, tuple[LayerLine, ...]]:
    """Write everything beside ``work/layout``; return what :func:`image_layers` finds there."""
    digest, image_id, lines = image_layers(work / "layout", inputs.image.platform, built)
    rows: list[dict[str, Any]] = [
        {"owner": line.owner, "digest": line.digest, "diff_id": line.diff_id, "size": line.size} for line in lines
    ]
    pinned = f"{name.rpartition(':')[0]}@{digest}"
    files = {
        "image.digest": f"{digest}\n".encode(),
        "image.id": f"{image_id}\n".encode(),
        "layers.json": json.dumps({"layers": rows}, indent=2).encode() + b"\n",
        **manifests(inputs, pinned, queue),
        **statements(inputs, backend, name, digest, started, {}),
    }
    write_files(work, files)
    return digest, image_id, lines


def statements(
    inputs: Inputs, backend: str, name: str, digest: str, started: datetime, more: dict[str, str]
) -> dict[str, bytes]:
    """Bill of materials and provenance of the image, or the context, ``name`` with ``digest``."""
    image = {"name": name, "base": inputs.image.base}
    return {
        "sbom.cdx.json": make_sbom(inputs.series, inputs.flavor, inputs.image.epoch, inputs.engine, image),
        "provenance.intoto.json": make_provenance(inputs, backend, (name, digest), started, datetime.now(UTC), more),
    }
