"""Reports as Markdown, for a pull request or a job's summary."""

from __future__ import annotations

import re
from typing import TextIO

from patchforge.reports.model import Grid, Line, Report


def render_markdown(report: Report, out: TextIO) -> None:
    """Print the report: tables as tables, lines of figures as they are, what is wrong as a list."""
    parts = [f"### patchforge {report.command}"]
    run: list[str] = []
    for block in report.blocks:
        if isinstance(block, Line):
            run.append(block.text)
            continue
        parts += _verbatim(run)
        run = []
        parts.append(_table(block))
    parts += _verbatim(run)
    if report.problems:
        parts.append(
            "\n".join(
                f"- **{p.severity}**: {_text(f'{p.where}: ' if p.where else '')}{_text(p.message)}"
                + (f"  \n  {_text(p.hint)}" if p.hint else "")
                for p in report.problems
            )
        )
    if report.notes:
        parts.append("\n".join(f"- {_text(note)}" for note in report.notes))
    out.write("\n\n".join(parts) + "\n")
    out.flush()


def _verbatim(lines: list[str]) -> list[str]:
    """Lines as a block whose fence is longer than any in it."""
    if not lines:
        return []
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text\n{text}\n{fence}"]


def _table(grid: Grid) -> str:
    marks = [" ---: " if n in grid.right else " --- " for n in range(len(grid.columns))]
    rows = [f"| {' | '.join(_text(cell.text) for cell in row)} |" for row in grid.rows]
    title = [f"**{_text(grid.title)}**", ""] if grid.title else []
    return "\n".join([*title, f"| {' | '.join(map(_text, grid.columns))} |", f"|{'|'.join(marks)}|", *rows])


def _text(text: str) -> str:
    """``text`` so that nothing in it means anything to Markdown or HTML."""
    return re.sub(r"([\\|<>*`\[\]_#~])", r"\\\1", " ".join(text.split())).replace("@", "&#64;")
