"""PATCHES.md: everything outside the markers belongs to people, everything between them is written here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchforge.errors import InputError
from patchforge.headers import Header
from patchforge.series.parsed import Schema, check_headers
from patchforge.series.project import PatchFile, Series

NAME = "PATCHES.md"
_BEGIN = re.compile(r"<!-- patchforge:table ([A-Za-z0-9][A-Za-z0-9._+-]*) -->")
_END = "<!-- /patchforge:table -->"
_COLUMNS = ("#", "Patch", "Kind", "What", "Upstream", "Retires when", "Env")


def begin(pin: str) -> str:
    """The marker line before the table of ``pin``."""
    return f"<!-- patchforge:table {pin} -->"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: the patch it is about, its line, and its cells with the header line each comes from."""

    patch: str
    text: str
    cells: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """The table of one pin."""

    pin: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def text(self) -> str:
        """What stands between the markers."""
        return "\n".join([*self.head, *(row.text for row in self.rows), ""]) + "\n"


def make_table(series: Series, schema: Schema) -> Table:
    """The table of ``series``.  Raises :class:`ManyProblems` for headers that are not valid."""
    assert series.pin is not None
    rows = [_row(number, file, header) for number, (file, header) in enumerate(check_headers(series, schema), 1)]
    count = len(rows)
    head = (
        "",
        f"{count} patch{'es' * (count != 1)} against {series.pin.distribution} {series.pin.version}, in the order they apply.",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'|'.join([' ---: ', *[' --- '] * (len(_COLUMNS) - 1)])}|",
    )
    return Table(series.pin.id, head, tuple(rows))


def _row(number: int, file: PatchFile, header: Header) -> Row:
    keys = ("Kind", "What", "Upstream", "Retires-when", "Env")
    cells = tuple((cell(header.get(key)), header.line_of(key)) for key in keys)
    texts = [str(number), f"[{cell(file.name)}]({file.label})", *(text for text, _ in cells)]
    return Row(file.name, f"| {' | '.join(texts)} |".replace("|  |", "| |"), cells)


def cell(text: str) -> str:
    """``text`` as one Markdown table cell."""
    return re.sub(r"([\\|<>*`\[\]])", r"\\\1", " ".join(text.split()))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the table of a pin stands in the document: the text before, between and after, and the first line between."""

    before: str
    between: str
    after: str
    line: int


def find_table(document: str, pin: str) -> Place:
    """Find the markers of ``pin``.  Raises :class:`InputError` when they are missing, doubled or not closed."""
    lines = document.split("\n")
    starts = [i for i, line in enumerate(lines) if (m := _BEGIN.fullmatch(line.rstrip("\r"))) and m.group(1) == pin]
    if len(starts) != 1:
        what = "has no table" if not starts else "has several tables"
        raise InputError(
            f"the document {what} for {pin}",
            reason="markers",
            file=NAME,
            line=starts[1] + 1 if starts else None,
            hint=f"put the line '{begin(pin)}' and, below it, '{_END}' where the table belongs; 'patchforge table' fills it",
        )
    start = starts[0]
    for i in range(start + 1, len(lines)):
        line = lines[i].rstrip("\r")
        if line == _END:
            before, between = "\n".join(lines[: start + 1]) + "\n", "\n".join(lines[start + 1 : i])
            return Place(before, between + "\n" if i > start + 1 else "", "\n".join(lines[i:]), start + 2)
        if _BEGIN.fullmatch(line):
            break
    raise InputError(
        "the table is not closed", reason="markers", file=NAME, line=start + 1, hint=f"put the line '{_END}' after it"
    )
