"""Ours beside upstream's: the text of each thing a patch changes, in the patched pin and in the release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from patchforge.engine.model import FileState, Step
from patchforge.evidence.definitions import NotPythonError, definitions
from patchforge.evidence.model import Unit
from patchforge.evidence.units import Release

_MOST = 24


def both_texts(
    units: Iterable[Unit], steps: Sequence[Step], release: Release
) -> dict[str, tuple[list[str], list[str]]]:
    """By unit: its lines in the patched pin, and those in the release; at most two dozen of each."""
    out = {}
    for unit in units:
        step = next((s for s in steps if (s.source or s.path) == unit.old.rpartition(":")[0]), None)
        if step is None:
            continue
        path, _, line = unit.new.rpartition(":")
        theirs = _lines(release.read(path), int(line), unit.last) if path and line.isdigit() else []
        out[unit.name] = (_ours(unit, step), theirs)
    return out


def _ours(unit: Unit, step: Step) -> list[str]:
    if step.after is None:
        return []
    try:
        found = definitions(step.after.data).get(unit.name) if step.path.endswith(".py") else None
    except NotPythonError:
        found = None
    if found is not None:
        return _lines(step.after, found.first, found.last)
    put = [text for _, _, lines in step.edits for text in lines]
    return [text.decode("utf-8", "replace") for text in put[:_MOST]]


def _lines(state: FileState | None, first: int, last: int) -> list[str]:
    if state is None:
        return []
    lines = [text.decode("utf-8", "replace") for text in state.lines[first - 1 : max(last, first)]]
    return [*lines[:_MOST], "…"] if len(lines) > _MOST else lines
