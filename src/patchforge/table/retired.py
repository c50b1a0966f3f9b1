"""The record of retired patches in PATCHES.md, below the table of their pin.  Rows are added and never rewritten."""

from __future__ import annotations

from dataclasses import dataclass

from patchforge.errors import InputError
from patchforge.headers import Header
from patchforge.table.document import NAME, cell, find_table

_COLUMNS = ("Patch", "Kind", "What", "Upstream", "Retired at", "Because")
_END = "<!-- /patchforge:retired -->"


@dataclass(frozen=True, slots=True)
class Retired:
    """A patch that went: its name and header, the release that made it unnecessary, and why."""

    name: str
    header: Header
    release: str
    why: str

    def row(self) -> str:
        """The line of the record."""
        texts = [self.name, *(self.header.get(k) for k in ("Kind", "What", "Upstream")), self.release, self.why]
        return f"| {' | '.join(cell(text) for text in texts)} |"


def recorded(document: str, pin: str, retired: list[Retired]) -> str:
    """``document`` with ``retired`` added to the record of ``pin``, which is begun below its table when it is not there.

    Raises :class:`InputError` when the record is not closed.
    """
    begin = f"<!-- patchforge:retired {pin} -->"
    rows = [r.row() for r in retired]
    lines = document.split("\n")
    if begin in lines:
        start = lines.index(begin)
        if _END not in lines[start:]:
            raise InputError("the record of retired patches is not closed", reason="markers", file=NAME, line=start + 1)
        end = lines.index(_END, start)
        while end > start + 1 and not lines[end - 1].strip():
            end -= 1
        return "\n".join([*lines[:end], *rows, *lines[end:]])
    place = find_table(document, pin)
    closing, newline, rest = place.after.partition("\n")
    head = [f"| {' | '.join(_COLUMNS)} |", f"|{'|'.join([' --- '] * len(_COLUMNS))}|"]
    record = "\n".join(["", begin, "", "Retired:", "", *head, *rows, "", _END, ""])
    return place.before + place.between + closing + "\n" + record + (rest if newline else "")
