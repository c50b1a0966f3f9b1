"""OCI image layouts: reading a base, every blob proved by its digest, and writing an image."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchforge.errors import InputError, Refused
from patchforge.image.layer import digest_of

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_LAYERS = {"application/vnd.oci.image.layer.v1.tar": "", LAYER: "gzip"}
_MAX_JSON = 8 << 20


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob as a descriptor names it."""

    media_type: str
    digest: str
    size: int

    def document(self, **more: Any) -> dict[str, Any]:
        """The descriptor."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size, **more}


@dataclass(frozen=True, slots=True)
class Base:
    """One image of a layout: its manifest's digest, its layers lowest first, and its configuration."""

    layout: Path
    digest: str
    manifest: Mapping[str, Any]
    config: Mapping[str, Any]
    layers: tuple[Blob, ...]

    def path(self, blob: Blob) -> Path:
        """Where the blob lies."""
        return blob_path(self.layout, blob.digest)


def dump(document: Mapping[str, Any]) -> bytes:
    """JSON with sorted keys and no spare white space: the same bytes for the same content."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def blob_path(layout: Path, digest: str) -> Path:
    """Where a layout keeps the blob ``digest``.  Raises :class:`Refused` for a digest that is not SHA-256."""
    algorithm, _, value = digest.partition(":")
    if algorithm != "sha256" or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise Refused(f"{digest[:80]!r} is not a SHA-256 digest", reason="base-corrupt")
    return layout / "blobs" / algorithm / value


def read_base(layout: Path, digest: str | None, platform: str) -> Base:
    """The image ``digest`` of ``layout`` for ``platform`` (``OS/ARCHITECTURE``); without ``digest``, its only one.

    ``digest`` may be an index's, as registries publish it: the platform's manifest below it is taken.  Raises
    :class:`InputError` for what is no layout, :class:`Refused` for an image that is not there or not what it says.
    """
    if not (layout / "oci-layout").is_file():
        raise InputError(
            "this is no OCI image layout: it has no file oci-layout",
            reason="base-missing",
            file=str(layout),
            hint="'skopeo copy docker://NAME@sha256:… oci:DIR' makes one",
        )
    try:
        index = json.loads((layout / "index.json").read_bytes())
        listed = list(index["manifests"])
        found = _find(layout, listed, digest, platform)
        manifest = _json(layout, found)
        config = _json(layout, manifest["config"])
        layers = tuple(Blob(item["mediaType"], item["digest"], item["size"]) for item in manifest["layers"])
        count = len(config["rootfs"]["diff_ids"])
        have = f"{config['os']}/{config['architecture']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused(
            f"the base cannot be read: {type(error).__name__}: {error}", reason="base-corrupt", file=str(layout)
        ) from error
    if count != len(layers):
        raise Refused(f"{len(layers)} layers and {count} diff_ids", reason="base-corrupt", file=str(layout))
    if have != "/".join(platform.split("/")[:2]):
        raise Refused(f"the base is for {have}, the pin for {platform}", reason="platform-mismatch", file=str(layout))
    for blob in layers:
        if blob.media_type not in _LAYERS:
            raise Refused(
                f"a layer of the base is {blob.media_type}",
                reason="base-corrupt",
                file=str(layout),
                hint="'skopeo copy --dest-compress-format gzip … oci:DIR' converts it",
            )
        path = blob_path(layout, blob.digest)
        if not path.is_file() or path.stat().st_size != blob.size:
            raise Refused(f"the layer {blob.digest[:19]}… is missing or cut off", reason="base-corrupt", file=str(path))
    return Base(layout, found["digest"], manifest, config, layers)


def _find(layout: Path, listed: list[Any], digest: str | None, platform: str) -> Any:
    """The descriptor of the manifest wanted, looked for in the index and in indexes below it."""
    if digest is None:
        if len(listed) != 1:
            raise Refused(
                f"the layout holds {len(listed)} images", reason="base-unpinned", hint="pin one by its digest"
            )
        return _resolved(layout, listed[0], platform)
    for item in listed:
        if item["digest"] == digest:
            return _resolved(layout, item, platform)
    path = blob_path(layout, digest)
    if path.is_file():
        size = path.stat().st_size
        kind = json.loads(path.read_bytes()).get("mediaType", MANIFEST) if size < _MAX_JSON else ""
        return _resolved(layout, {"digest": digest, "size": size, "mediaType": kind}, platform)
    raise Refused(
        f"the layout does not hold the pinned base {digest[:19]}…",
        reason="base-missing",
        file=str(layout),
        hint=f"it holds {', '.join(str(item['digest'])[:19] + '…' for item in listed) or 'nothing'}",
    )


def _resolved(layout: Path, item: Any, platform: str) -> Any:
    if item.get("mediaType") != INDEX:
        return item
    wanted = platform.split("/")
    below = _json(layout, item)["manifests"]
    fitting = [m for m in below if [m.get("platform", {}).get(k) for k in ("os", "architecture")] == wanted[:2]]
    if len(fitting) != 1:
        raise Refused(
            f"the base's index lists {len(fitting)} images for {platform}",
            reason="platform-mismatch",
            file=str(layout),
        )
    return fitting[0]


def _json(layout: Path, descriptor: Any) -> Any:
    """A JSON blob, proved."""
    path = blob_path(layout, descriptor["digest"])
    if path.stat().st_size > _MAX_JSON:
        raise Refused("a manifest or configuration of the base is too large", reason="base-corrupt", file=str(path))
    data = path.read_bytes()
    if digest_of(data) != descriptor["digest"] or len(data) != descriptor["size"]:
        raise Refused("the blob does not hash to its name", reason="base-corrupt", file=str(path))
    return json.loads(data)


def compression(blob: Blob) -> str:
    """How a layer is compressed: ``gzip`` or not at all (empty)."""
    return _LAYERS[blob.media_type]


class Writer:
    """Writes a layout into an empty directory."""

    def __init__(self, layout: Path) -> None:
        self.layout = layout
        (layout / "blobs/sha256").mkdir(parents=True)
        (layout / "oci-layout").write_bytes(b'{"imageLayoutVersion":"1.0.0"}')

    def put(self, data: bytes, media_type: str) -> Blob:
        """Write a blob."""
        blob = Blob(media_type, digest_of(data), len(data))
        blob_path(self.layout, blob.digest).write_bytes(data)
        return blob

    def take(self, base: Base, blob: Blob) -> None:
        """A blob of the base: by hard link where the disk allows, copied and proved otherwise."""
        source, target = base.path(blob), blob_path(self.layout, blob.digest)
        if target.exists():
            return
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)
            with target.open("rb") as stream:
                if f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}" != blob.digest:
                    raise Refused(
                        "the blob does not hash to its name", reason="base-corrupt", file=str(source)
                    ) from None

    def close(self, manifest: Blob, platform: str, name: str) -> None:
        """Write the index; ``name`` is ``HOST/PATH:TAG``, under both keys that loaders look for."""
        system, architecture = platform.split("/")[:2]
        names = {
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
            "io.containerd.image.name": name,
        }
        entry = manifest.document(platform={"os": system, "architecture": architecture}, annotations=names)
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
        (self.layout / "index.json").write_bytes(dump(index))
