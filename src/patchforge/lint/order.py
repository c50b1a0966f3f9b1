"""Accidental order: a patch that stands on lines of an earlier one without saying so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patchforge.diff import Hunk, Patch
from patchforge.errors import Problem

Span = tuple[int, int]


@dataclass(slots=True)
class _Block:
    """Lines an earlier patch put in a file, in the coordinates the file has now (half-open, from 0)."""

    patch: str
    start: int
    end: int


def accidental_order(patches: list[Patch], requires: Mapping[str, set[str]]) -> Iterator[Problem]:
    """Warn of each pair where the later patch's hunk, context included, covers lines of the earlier one.

    Works on the recorded line numbers alone, carried forward through the patches in between; a pair connected by
    ``Requires`` or ``Supersedes``, through others too, is meant to be so.
    """
    closure = _closure(requires)
    blocks: dict[str, list[_Block]] = {}
    for patch in patches:
        reported: set[str] = set()
        for change in patch.files:
            source, path = change.old_path, change.new_path
            mine = blocks.get(source or path or "", [])
            for hunk in change.hunks:
                first, last = _old(hunk)
                for block in mine:
                    if (
                        block.patch == patch.name
                        or block.patch in reported
                        or not (block.start < last and first < block.end)
                    ):
                        continue
                    if block.patch in closure.get(patch.name, set()):
                        continue
                    reported.add(block.patch)
                    yield Problem(
                        f"stands on lines that '{block.patch}' adds, so their order matters",
                        patch.label,
                        hunk.line,
                        f"say 'Requires: {block.patch}' if that is meant",
                        "accidental-order",
                        "warning",
                        patch.name,
                    )
            moved = _carried(mine, change.hunks) + [
                _Block(patch.name, start, end) for hunk in change.hunks for start, end in [_new(hunk)] if end > start
            ]
            if source is not None and source != path and change.action != "copy":
                blocks.pop(source, None)
            if path is not None:
                blocks[path] = moved


@dataclass(frozen=True, slots=True)
class Shift:
    """Patch ``earlier`` moves ``hunks`` hunks of ``later`` in ``file`` by ``lines`` in all: so many lines their recorded numbers
    would be off without it, or when it grows by as many."""

    earlier: str
    later: str
    file: str
    hunks: int
    lines: int


def shifts(patches: list[Patch]) -> list[Shift]:
    """Which recorded line numbers depend on which earlier patch, in series order; pairs without effect are left out."""
    found: list[Shift] = []
    inserted: dict[str, list[tuple[str, int, int]]] = {}  # by file: patch, line from which on, lines more
    for patch in patches:
        for change in patch.files:
            path = change.new_path or change.old_path or ""
            before = inserted.pop(change.old_path or path, [])
            totals: dict[str, tuple[int, int]] = {}
            for hunk in change.hunks:
                per: dict[str, int] = {}
                for name, line, more in before:
                    if line <= _old(hunk)[0]:
                        per[name] = per.get(name, 0) + more
                for name, more in per.items():
                    if more:
                        hunks, _ = totals.get(name, (0, 0))
                        totals[name] = hunks + 1, more
            found += [Shift(name, patch.name, path, hunks, lines) for name, (hunks, lines) in totals.items()]
            if change.new_path is None:
                continue
            moved = [(name, _carried_line(line, change.hunks), more) for name, line, more in before]
            own = [(patch.name, _new(h)[1], h.new_len - h.old_len) for h in change.hunks if h.new_len != h.old_len]
            inserted[path] = moved + own
    return found


def _carried_line(line: int, hunks: tuple[Hunk, ...]) -> int:
    shift = 0
    for hunk in hunks:
        if _old(hunk)[0] + hunk.leading < line:
            shift += hunk.new_len - hunk.old_len
    return line + shift


def _old(hunk: Hunk) -> Span:
    start = hunk.old_start - 1 if hunk.old_len else hunk.old_start
    return start, start + hunk.old_len


def _new(hunk: Hunk) -> Span:
    """The changed part of the new side."""
    start = hunk.new_start - 1 if hunk.new_len else hunk.new_start
    return start + hunk.leading, start + hunk.new_len - hunk.trailing


def _carried(blocks: list[_Block], hunks: tuple[Hunk, ...]) -> list[_Block]:
    """``blocks`` after ``hunks``: shifted by what went in above; what was replaced is gone."""
    out = []
    for block in blocks:
        shift, kept = 0, True
        for hunk in hunks:
            first, last = _old(hunk)
            first, last = first + hunk.leading, last - hunk.trailing
            if last <= block.start:
                shift += hunk.new_len - hunk.old_len
            elif first < block.end and last >= block.end and first <= block.start:
                kept = False
        if kept:
            out.append(_Block(block.patch, block.start + shift, block.end + shift))
    return out


def _closure(requires: Mapping[str, set[str]]) -> dict[str, set[str]]:
    done: dict[str, set[str]] = {}
    for name in requires:
        seen: set[str] = set()
        todo = list(requires[name])
        while todo:
            other = todo.pop()
            if other not in seen:
                seen.add(other)
                todo += requires.get(other, set())
        done[name] = seen
    return done
