"""The reports of ``build-image``, ``sbom`` and ``lock --image``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from patchforge.image.checks import Inputs
from patchforge.image.native import Built
from patchforge.image.output import LayerLine
from patchforge.reports.failures import patch_document
from patchforge.reports.model import Block, Cell, Grid, Line, Report, plural


def build_report(
    inputs: Inputs,
    backend: str,
    out: str,
    name: str,
    digest: str,
    layers: tuple[LayerLine, ...],
    built: Built | None,
    checked: bool,
    pushed: str | None,
) -> Report:
    """What was built; a build that failed raises instead."""
    blocks: list[Block] = []
    if layers:
        rows = tuple(
            (Cell(str(n), "dim"), Cell(line.owner), Cell(_size(line.size)), Cell(line.digest[:19] + "…", "dim"))
            for n, line in enumerate(layers, 1)
        )
        blocks.append(Grid(("#", "layer", "size", "digest"), rows, (0, 2)))
    if built is not None:
        blocks.append(Line(f"the base is the pinned release: {plural(built.pristine, 'file')} compared with the wheel"))
        blocks.append(Line(f"the patch layer is as locked: {plural(built.checked, 'file')}"))
    if checked:
        blocks.append(Line("a second build in another directory is equal", "good"))
    what = "build context" if backend == "context" else "image"
    blocks.append(Line(f"{what} {name}: {digest}", "good"))
    blocks.append(Line(f"in {out}"))
    if pushed:
        blocks.append(Line(f"pushed to {pushed}", "good"))
    notes = []
    if inputs.allowed_dirty:
        listed = ", ".join(item[3:] for item in inputs.source.dirty[:3]) or "the project is in no git repository"
        notes.append(f"built from what no commit holds, and labelled so: {listed}")
    fields: dict[str, Any] = {
        "backend": backend,
        "flavor": inputs.flavor.name,
        "name": name,
        "digest": digest,
        "out": out,
        "dirty": inputs.allowed_dirty,
        "checked": checked,
        "pushed": pushed,
        "layers": [{"owner": n.owner, "digest": n.digest, "diff_id": n.diff_id, "size": n.size} for n in layers],
    }
    patches: tuple[Mapping[str, Any], ...]
    if built is not None:
        patches = tuple(patch_document(result) for result in built.applied.results)
    else:
        patches = tuple({"name": patch.name, "result": "listed"} for patch in inputs.series.patches)
    return Report("build-image", 0, patches, fields, tuple(blocks), notes=tuple(notes))


def sbom_report(names: list[str], outcome: str, data: bytes, path: str | None) -> Report:
    """``outcome``: ``printed``, ``written``, ``current``, or ``stale`` (under ``--check``)."""
    patches = tuple({"name": name, "result": "listed"} for name in names)
    words = {
        "written": (f"wrote {path}: {plural(len(names), 'patch', 'patches')}", "good"),
        "current": (f"{path} is up to date", "good"),
        "stale": (f"{path} is out of date: run 'patchforge sbom --out {path}'", "bad"),
    }
    fields: dict[str, Any] = {"outcome": outcome}
    if outcome == "printed":
        fields["sbom"] = json.loads(data)
        return Report("sbom", 0, patches, fields, (Line(data.decode().rstrip("\n")),))
    fields["file"] = path
    return Report("sbom", 1 if outcome == "stale" else 0, patches, fields, (Line(*words[outcome]),))


def image_lock_report(files: list[tuple[str, str]], names: list[str]) -> Report:
    """``files``: each file of the image's inputs with ``written``, ``current`` or ``stale``."""
    styles = {"written": "good", "current": "dim", "stale": "bad"}
    rows = tuple((Cell(path), Cell(outcome, styles[outcome])) for path, outcome in files)
    stale = sum(outcome == "stale" for _, outcome in files)
    blocks: list[Block] = [Grid(("file", ""), rows)]
    if stale:
        blocks.append(Line(f"{plural(stale, 'file')} out of date: run 'patchforge lock --image'", "bad"))
    outcome = "stale" if stale else "written" if any(o == "written" for _, o in files) else "current"
    fields = {"outcome": outcome, "files": [{"path": path, "result": result} for path, result in files]}
    patches = tuple({"name": name, "result": "listed"} for name in names)
    return Report("lock", 1 if stale else 0, patches, fields, tuple(blocks))


def _size(size: int) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size = size / 1000  # type: ignore[assignment]
    return f"{size:.1f} GB"
