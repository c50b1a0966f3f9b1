"""What another builder made, held against the lock: the layers are read from the top until every touched file was seen."""

from __future__ import annotations

from pathlib import Path

from patchforge.errors import Refused
from patchforge.image.layer import whiteout
from patchforge.image.layout import read_base
from patchforge.image.scan import Node, read_layer
from patchforge.series.project import Series


def check_image(layout: Path, platform: str, series: Series) -> int:
    """Compare the touched files in the only image of ``layout`` with the lock; return their number.

    Raises :class:`Refused` (``tree-mismatch``) for the first that is not what the series makes of it.
    """
    assert series.pin is not None and series.lock is not None
    image = read_base(layout, None, platform)
    wanted = {f"{series.pin.root}/{f.path}": f for f in series.lock.files if f.before != f.after}
    state: dict[str, str | None] = {}  # what the topmost layer that has it says: a hash, or that it is gone
    for blob, diff_id in zip(reversed(image.layers), reversed(image.config["rootfs"]["diff_ids"]), strict=True):
        _look(read_layer(image.path(blob), blob, diff_id), [path for path in wanted if path not in state], state)
        if len(state) == len(wanted):
            break
    for path, locked in wanted.items():
        if state.get(path) != locked.after:
            raise Refused(
                f"the image's {path} is not what lock.toml says",
                reason="tree-mismatch",
                file=series.lock_label,
                hint="the builder did not run the Dockerfile as it stands",
            )
    return len(wanted)


def _look(nodes: dict[str, Node], paths: list[str], state: dict[str, str | None]) -> None:
    """Note what one layer says of ``paths``, which are relative to some ``site-packages``."""
    sites = {path.partition("/site-packages/")[0] + "/site-packages" for path in nodes if "/site-packages/" in path}
    for site in sites:
        for path in paths:
            full = f"{site}/{path}"
            node = nodes.get(full)
            if node is not None:
                state[path] = node.sha256 if node.kind == "file" else "no file"
                continue
            parts = full.split("/")
            above = ("/".join(parts[: n + 1]) for n in range(site.count("/") + 1, len(parts)))
            if any(whiteout(place) in nodes for place in above):
                state[path] = None
