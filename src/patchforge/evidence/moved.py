"""Where a file of the pin went: a file of the same name elsewhere in the release that defines most of the same things."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from patchforge.engine.model import FileState, Step
from patchforge.evidence.definitions import NotPythonError, definitions
from patchforge.evidence.units import Release

_MOST = 8
"""Files of one name that are looked into: a name that more files have says nothing."""


def moved_files(steps: Iterable[Step], release: Release) -> list[str]:
    """Where most of each Python file lies that the steps change and the release has in another directory, in words."""
    found = []
    for step in steps:
        before = step.before
        if before is None or not step.path.endswith(".py") or release.read(step.path) is not None:
            continue
        name = PurePosixPath(step.path).name
        candidates = [p for p in release.paths() if PurePosixPath(p).name == name]
        if len(candidates) <= _MOST:
            found += [f"most of {name} is in {path} now" for path in candidates if _same(before, release.data(path))]
    return found


def _same(before: FileState, data: bytes) -> bool:
    """True when most of what stands at the top of one file does in the other."""
    one, other = (_top(content) for content in (before.data, data))
    return len(one & other) * 2 > len(one | other)


def _top(data: bytes) -> set[str]:
    try:
        return {name for name in definitions(data).names() if "." not in name and not name.startswith("<")}
    except NotPythonError:
        return set()
