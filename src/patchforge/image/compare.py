"""Two builds of the same inputs: the first thing that differs, by name."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from patchforge.image.layer import digest_of
from patchforge.image.layout import blob_path


def first_difference(one: Path, two: Path) -> str | None:
    """Compare two directories of plain files, path by path; ``None`` when they are equal."""
    left, right = _files(one), _files(two)
    for path in sorted(left | right):
        if path not in left or path not in right:
            return f"{path} is only in the {'first' if path in left else 'second'} build"
        a, b = one / path, two / path
        if not a.samefile(b) and a.read_bytes() != b.read_bytes():
            return f"{path} has other bytes"
        if a.stat().st_mode & 0o100 != b.stat().st_mode & 0o100:
            return f"{path} is executable in one build only"
    return None


def _files(top: Path) -> set[str]:
    return {p.relative_to(top).as_posix() for p in top.rglob("*") if p.is_file() or p.is_symlink()}


def first_image_difference(one: Path, two: Path) -> str | None:
    """Compare the images of two layouts: layer, entry and field of the first difference; ``None`` for one digest."""
    a, b = _manifest(one), _manifest(two)
    if a == b:
        return None
    for number, (left, right) in enumerate(zip(a[1]["layers"], b[1]["layers"], strict=False), 1):
        if left["digest"] != right["digest"]:
            return (
                f"layer {number}: {_layer_difference(blob_path(one, left['digest']), blob_path(two, right['digest']))}"
            )
    if len(a[1]["layers"]) != len(b[1]["layers"]):
        return f"{len(a[1]['layers'])} layers and {len(b[1]['layers'])}"
    left, right = (json.loads(blob_path(p, m["config"]["digest"]).read_bytes()) for p, m in ((one, a[1]), (two, b[1])))
    return f"the configuration: {_key(left, right)}" if left != right else f"the manifest: {_key(a[1], b[1])}"


def _manifest(layout: Path) -> tuple[str, Any]:
    index = json.loads((layout / "index.json").read_bytes())
    data = blob_path(layout, index["manifests"][0]["digest"]).read_bytes()
    return digest_of(data), json.loads(data)


def _layer_difference(one: Path, two: Path) -> str:
    with tarfile.open(one) as left, tarfile.open(two) as right:
        a, b = iter(left), iter(right)
        while True:
            x, y = next(a, None), next(b, None)
            if x is None and y is None:
                return "the same entries, compressed differently"
            if x is None or y is None or x.name != y.name:
                return f"{(x or y).name} stands in one build only, or at another place"  # type: ignore[union-attr]
            for field in ("type", "mode", "uid", "gid", "mtime", "size", "linkname", "pax_headers"):
                if getattr(x, field) != getattr(y, field):
                    return f"{x.name}: {field} {getattr(x, field)!r} and {getattr(y, field)!r}"
            if x.isfile() and left.extractfile(x).read() != right.extractfile(y).read():  # type: ignore[union-attr]
                return f"{x.name}: other bytes"


def _key(one: Any, two: Any, place: str = "") -> str:
    """The place of the first difference of two JSON documents."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted(set(one) | set(two)):
            if one.get(key) != two.get(key):
                return _key(one.get(key), two.get(key), f"{place}.{key}" if place else key)
    if isinstance(one, list) and isinstance(two, list):
        for number, (a, b) in enumerate(zip(one, two, strict=False)):
            if a != b:
                return _key(a, b, f"{place}[{number}]")
    return place
