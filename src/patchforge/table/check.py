"""Comparing the table in PATCHES.md with the one the headers give."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from patchforge.errors import Problem
from patchforge.series.project import Series
from patchforge.table.document import NAME, Place, Table

_ROW = re.compile(r"\| *\d+ *\| *\[([^\]]+)\]\(")


@dataclass(frozen=True, slots=True)
class TableCheck:
    """The outcome: the diff (empty when the table is right) and, per patch at fault, a problem on its patch file."""

    table: Table
    diff: tuple[str, ...]
    problems: tuple[Problem, ...]


def check_table(series: Series, table: Table, place: Place) -> TableCheck:
    """Compare byte for byte."""
    if place.between == table.text:
        return TableCheck(table, (), ())
    have, want = place.between.split("\n"), table.text.split("\n")
    diff = difflib.unified_diff(have, want, f"{NAME} (as it is)", f"{NAME} (from the headers)", lineterm="", n=1)
    return TableCheck(table, tuple(_shifted(diff, place.line)), tuple(_faults(series, table, place)))


def _shifted(diff: object, first: int) -> list[str]:
    """The diff with line numbers of the document instead of the table."""
    out = []
    for line in diff:  # type: ignore[attr-defined]
        match = re.fullmatch(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@", line)
        if match:
            old, new = int(match[1]) + first - 1, int(match[3]) + first - 1
            line = f"@@ -{old}{match[2]} +{new}{match[4]} @@"
        out.append(line)
    return out


def _faults(series: Series, table: Table, place: Place) -> list[Problem]:
    labels = {p.name: p.label for p in series.patches}
    have: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(place.between.split("\n")):
        match = _ROW.match(line)
        if match:
            have[re.sub(r"\\(.)", r"\1", match.group(1))] = (place.line + number, line)
    problems = []
    fix = "run 'patchforge table' and commit PATCHES.md"
    for row in table.rows:
        if row.patch not in have:
            problems.append(
                Problem(f"{NAME} has no row for this patch", labels[row.patch], 1, fix, "table", patch=row.patch)
            )
        elif have[row.patch][1] != row.text:
            at, text = have[row.patch]
            source = next((number for cell, number in row.cells if f"| {cell} |" not in text), 1)
            problems.append(
                Problem(
                    f"{NAME}:{at} differs from what the header says",
                    labels[row.patch],
                    source,
                    fix,
                    "table",
                    patch=row.patch,
                )
            )
    known = {row.patch for row in table.rows}
    for name, (at, _) in have.items():
        if name not in known:
            problems.append(Problem(f"a row for '{name}', which is not in the series", NAME, at, fix, "table"))
    if not problems:
        problems.append(Problem("the table is not byte for byte what the headers give", NAME, place.line, fix, "table"))
    return problems
