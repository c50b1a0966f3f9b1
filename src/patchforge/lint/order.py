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
