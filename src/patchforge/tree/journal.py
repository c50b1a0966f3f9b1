"""The journal of a change: its names, and whether one found in a tree may be believed."""

from __future__ import annotations

from typing import Any

PREPARE = ".patchforge-prepare"
COMMIT = ".patchforge-commit"


def sane(journal: dict[str, Any]) -> bool:
    """A journal lies in the tree, and the tree may be anybody's: no path of it may leave the tree."""
    paths = [op["path"] for op in journal["ops"]] + list(journal["remove"]) + list(journal["made"])
    hashes = [op[key] for op in journal["ops"] for key in ("before", "after")]
    return all(
        isinstance(path, str) and path and not {"", ".", ".."} & set(path.split("/")) and "\0" not in path
        for path in paths
    ) and all(value is None or isinstance(value, str) for value in hashes)
