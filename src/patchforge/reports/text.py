"""Reports for people: rich on a terminal, plain aligned columns everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from patchforge.errors import Problem
from patchforge.reports.model import Block, Grid, Line, Report

STYLES = {
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "dim": "dim",
    "head": "bold",
    "add": "green",
    "del": "red",
    "": "",
}
"""What each style word looks like; the words mean the same without colours."""


def render(report: Report, out: TextIO, err: TextIO, quiet: bool) -> None:
    """Print ``report``: what was found to ``out``, what is wrong to ``err``."""
    blocks: tuple[Block, ...] = () if quiet else report.blocks
    if out.isatty():
        _rich(blocks, out)
    else:
        for block in blocks:
            out.writelines(text + "\n" for text in plain(block))
    out.flush()
    lines = [*_problems(report.problems)]
    if not quiet:
        lines += [Line(f"note: {note}", "dim") for note in report.notes]
    if err.isatty() and lines:
        _rich(tuple(lines), err)
    else:
        err.writelines(line.text + "\n" for line in lines)
    err.flush()


def _problems(problems: tuple[Problem, ...]) -> Iterator[Line]:
    for problem in problems:
        where = f"{problem.where}: " if problem.where else ""
        style = "bad" if problem.severity == "error" else "warn"
        yield Line(f"{problem.severity}: {where}{problem.message}", style)
        if problem.hint:
            yield Line(f"  {problem.hint}")


def plain(block: Block) -> Iterator[str]:
    """The lines of ``block`` without colour, columns aligned by blanks."""
    if isinstance(block, Line):
        yield block.text
        return
    if block.title:
        yield block.title
    rows = [list(block.columns), *([cell.text for cell in row] for row in block.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(block.columns))]
    for row in rows:
        cells = [
            text.rjust(width) if i in block.right else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _rich(blocks: tuple[Block, ...], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for block in blocks:
        if isinstance(block, Line):
            console.print(Text(block.text, style=STYLES[block.style]))
        else:
            console.print(_table(block), soft_wrap=False)


def _table(grid: Grid) -> object:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD, title=grid.title or None, title_justify="left", pad_edge=False, header_style="bold"
    )
    for number, column in enumerate(grid.columns):
        right = number in grid.right
        table.add_column(column, justify="right" if right else "left", no_wrap=right or number == 0, overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(cell.text, style=STYLES[cell.style]) for cell in row))
    return table
