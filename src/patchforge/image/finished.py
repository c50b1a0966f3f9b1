"""What another builder made, held against the lock: the layers are read from the top until every touched file was seen."""

from __future__ import annotations

from pathlib import Path

from patchforge.errors import Refused
from patchforge.image.bytecode import bytecode_of, why_stale
from patchforge.image.layer import WHITEOUT, parents, whiteout
from patchforge.image.layout import read_base
from patchforge.image.scan import Node, read_layer
from patchforge.series.project import Series


def check_image(layout: Path, platform: str, series: Series) -> int:
    """Compare the touched files in the only image of ``layout`` with the lock; return their number.

    Raises :class:`Refused` for the first that is not what the series makes of it (``tree-mismatch``), and for bytecode of one
    that an interpreter would not take for its source, or would run without looking at it (``bytecode-stale``).  Bytecode is
    looked at in the layers that are read, from the top down to the last touched file.
    """
    assert series.pin is not None and series.lock is not None
    image = read_base(layout, None, platform)
    wanted = {f"{series.pin.root}/{f.path}": f for f in series.lock.files if f.before != f.after}
    modules = {path for path in wanted if path.endswith(".py")}

    def keep(name: str) -> bool:
        path = name.partition("/site-packages/")[2]
        return path in modules or bytecode_of(path) in modules

    state: dict[str, Node | None] = {}  # what the topmost layer that has it says: the file, or that it is gone
    compiled: dict[str, Node] = {}
    gone: set[str] = set()
    for blob, diff_id in zip(reversed(image.layers), reversed(image.config["rootfs"]["diff_ids"]), strict=True):
        nodes = read_layer(image.path(blob), blob, diff_id, keep)
        for name, node in nodes.items():
            hidden = any(whiteout(place) in gone for place in (name, *parents(name)))
            if not hidden and bytecode_of(name.partition("/site-packages/")[2]) in modules:
                compiled.setdefault(name, node)
        gone |= {name for name in nodes if name.rpartition("/")[2].startswith(WHITEOUT)}
        _look(nodes, [path for path in wanted if path not in state], state)
        if len(state) == len(wanted):
            break
    for path, locked in wanted.items():
        there = state.get(path)
        if (None if there is None else there.sha256 if there.kind == "file" else "no file") != locked.after:
            raise Refused(
                f"the image's {path} is not what lock.toml says",
                reason="tree-mismatch",
                file=series.lock_label,
                hint="the builder did not run the Dockerfile as it stands",
            )
    for name, node in sorted(compiled.items()):
        source = state.get(bytecode_of(name.partition("/site-packages/")[2]) or "")
        why = why_stale(name, node.data, None if source is None else source.data)
        if why:
            raise Refused(
                f"the image's {name} {why}",
                reason="bytecode-stale",
                file=series.lock_label,
                hint="the builder did not run the Dockerfile as it stands",
            )
    return len(wanted)


def _look(nodes: dict[str, Node], paths: list[str], state: dict[str, Node | None]) -> None:
    """Note what one layer says of ``paths``, which are relative to some ``site-packages``."""
    sites = {path.partition("/site-packages/")[0] + "/site-packages" for path in nodes if "/site-packages/" in path}
    for site in sites:
        for path in paths:
            full = f"{site}/{path}"
            node = nodes.get(full)
            if node is not None:
                state[path] = node
                continue
            parts = full.split("/")
            above = ("/".join(parts[: n + 1]) for n in range(site.count("/") + 1, len(parts)))
            if any(whiteout(place) in nodes for place in above):
                state[path] = None
