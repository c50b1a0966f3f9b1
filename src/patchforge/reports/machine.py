"""Reports for machines: one JSON document, or GitHub workflow commands."""

from __future__ import annotations

import json
from typing import TextIO

from patchforge.errors import Problem
from patchforge.reports.model import Report


def render_json(report: Report, out: TextIO) -> None:
    """Print the document."""
    json.dump(report.document(), out, indent=2, ensure_ascii=True)
    out.write("\n")
    out.flush()


def render_github(report: Report, out: TextIO) -> None:
    """Print one annotation per problem, and a notice that says how it ended."""
    for problem in report.problems:
        out.write(annotation(problem) + "\n")
    if not report.problems:
        for note in report.notes:
            out.write(f"::notice title=patchforge {report.command}::{_data(note)}\n")
    out.flush()


def annotation(problem: Problem) -> str:
    """One workflow command; a problem of a file no repository holds still says its message."""
    place = []
    if problem.file is not None:
        place.append(f"file={_property(problem.file)}")
        if problem.line is not None:
            place.append(f"line={problem.line}")
    place.append(f"title={_property('patchforge: ' + problem.reason)}")
    level = "error" if problem.severity == "error" else "warning"
    message = problem.message + (f"\n{problem.hint}" if problem.hint else "")
    return f"::{level} {','.join(place)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
