"""The ``oci`` backend: deterministic layers appended to a base's layout, with no daemon and without root."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchforge import __version__
from patchforge.engine.apply import Applied
from patchforge.errors import InputError, Refused
from patchforge.image import facts
from patchforge.image.checks import Inputs
from patchforge.image.installed import Found, find, prove
from patchforge.image.layer import Layer, codec
from patchforge.image.layout import CONFIG, LAYER, MANIFEST, Base, Blob, Writer, dump, read_base
from patchforge.image.patching import check_layer, patch_layer
from patchforge.image.reading import read_back
from patchforge.image.scan import scan
from patchforge.image.toollayer import project_layer, tool_layer
from patchforge.series.parsed import Schema

MOST_LAYERS = 127
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Built:
    """An image as written: the digests of manifest and configuration, the new layers, and what was proved."""

    digest: str
    image_id: str
    layers: tuple[Layer, ...]
    applied: Applied
    found: Found
    pristine: int
    checked: int
    base_layers: int


def append(
    inputs: Inputs,
    schema: Schema,
    base: Base,
    wheel: Path,
    target: Path,
    name: str,
    cache: Path,
    fresh: bool,
    progress: Progress,
) -> Built:
    """Write to the empty directory ``target`` the layout of ``base`` with patchforge, project and patches on it.

    ``fresh`` compresses every layer again.  Raises :class:`Refused` by name for a base that is not the pinned wheel's
    untouched tree.
    """
    image = inputs.image
    assert inputs.series.pin is not None
    if image.bytecode != "none":
        _same_python(image.minor)
    if len(base.layers) + 3 > MOST_LAYERS:
        raise Refused(
            f"the base has {len(base.layers)} layers, and no runtime takes more than {MOST_LAYERS}",
            reason="base-corrupt",
        )
    nodes = scan(base, cache, progress)
    found = find(nodes, inputs.series.pin, inputs.flavor, image)
    pristine = prove(nodes, found, wheel)
    progress("applying the series", 0, 0)
    patches, applied = patch_layer(inputs.series, schema, nodes, found, wheel, image.bytecode)
    tool = tool_layer(inputs.tool, image, cache, found.python, fresh, lambda text: progress(text, 0, 0))
    layers = (tool, patches, project_layer(inputs.series))
    _same_codec(image.codec, layers)
    progress("writing the image", 0, 0)
    writer = Writer(target)
    for blob in base.layers:
        writer.take(base, blob)
    digest, image_id = _write(writer, inputs, base, layers, found, name)
    checked = check_layer(read_back(target, patches.digest, patches.diff_id), inputs.series, found.site)
    return Built(digest, image_id, layers, applied, found, pristine, checked, len(base.layers))


def open_base(inputs: Inputs, layout: Path | None) -> Base:
    """The pinned base in ``layout``.  Raises :class:`InputError` when no layout is named."""
    if layout is None:
        raise InputError(
            "the oci backend appends to a base on disk",
            reason="base-missing",
            hint=f"'skopeo copy docker://{inputs.image.base} oci:DIR', then --base DIR",
        )
    return read_base(layout, inputs.image.digest, inputs.image.platform)


def _same_codec(pinned: str, layers: tuple[Layer, ...]) -> None:
    if pinned and pinned != codec():
        shown = ", ".join(f"{layer.owner} {layer.diff_id}" for layer in layers)
        raise Refused(
            f"the layers would be compressed by '{codec()}', and the pin says '{pinned}': same content ({shown}), other digests",
            reason="codec-drift",
            hint="build where the pinned compressor is, or pin this one as 'codec' in pin.toml",
        )


def _same_python(minor: str) -> None:
    import sys

    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    if mine != minor:
        raise Refused(
            f"bytecode for Python {minor} cannot be made by Python {mine}",
            reason="python-mismatch",
            hint=f'run patchforge with Python {minor}, or say bytecode = "none" in pin.toml',
        )


def _write(
    writer: Writer, inputs: Inputs, base: Base, layers: tuple[Layer, ...], found: Found, name: str
) -> tuple[str, str]:
    when = facts.created(inputs)
    config: dict[str, Any] = copy.deepcopy(dict(base.config))
    engine_bin = found.python.rpartition("/")[0]
    config["created"] = when
    config["config"] = facts.start(inputs, config.get("config") or {}, engine_bin)
    config["rootfs"]["diff_ids"] = [*config["rootfs"]["diff_ids"], *(layer.diff_id for layer in layers)]
    by = f"patchforge {__version__} build-image"
    history = [{"created": when, "created_by": f"{by}: {layer.owner}"} for layer in layers]
    start = {"created": when, "created_by": f"{by}: start", "empty_layer": True}
    config["history"] = [*(config.get("history") or []), *history, start]
    blobs = [writer.put(layer.blob, LAYER) for layer in layers]
    config_blob = writer.put(dump(config), CONFIG)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config_blob.document(),
        "layers": [blob.document() for blob in (*base.layers, *blobs)],
        "annotations": facts.annotation_lines(inputs),
    }
    manifest_blob: Blob = writer.put(dump(manifest), MANIFEST)
    writer.close(manifest_blob, inputs.image.platform, name)
    return manifest_blob.digest, config_blob.digest
