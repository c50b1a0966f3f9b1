"""The report: what every command computes before anything is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from patchforge.errors import Problem

SCHEMA = 1
"""Version of the JSON documents; see docs/json.md."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table; ``style`` is a word of :data:`patchforge.reports.text.STYLES`."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table for people.  ``right`` lists the columns aligned right; ``title`` stands above it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: tuple[int, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line for people."""

    text: str
    style: str = ""


Block = Grid | Line


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one command.

    ``status`` is the exit status; ``patches`` and ``fields`` are the JSON document's list and its other members;
    ``blocks`` are what a person reads; ``problems`` what is wrong, each with its place.  ``quiet`` holds what ``-q``
    still prints.
    """

    command: str
    status: int
    patches: tuple[Mapping[str, Any], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        out: dict[str, Any] = {"schema": SCHEMA, "command": self.command, "status": self.status}
        out.update(self.fields)
        out["patches"] = [dict(patch) for patch in self.patches]
        if self.problems:
            out["problems"] = [problem_document(problem) for problem in self.problems]
        if self.notes:
            out["notes"] = list(self.notes)
        return out


def problem_document(problem: Problem) -> dict[str, Any]:
    """A problem as the JSON documents show it."""
    out: dict[str, Any] = {"reason": problem.reason, "severity": problem.severity, "message": problem.message}
    for key, value in (
        ("patch", problem.patch),
        ("file", problem.file),
        ("line", problem.line),
        ("hint", problem.hint),
    ):
        if value is not None:
            out[key] = value
    return out


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 patch``, ``2 patches``."""
    return f"{count} {one if count == 1 else many or one + 's'}"
