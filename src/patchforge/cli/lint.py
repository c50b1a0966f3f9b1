"""``patchforge lint``."""

from __future__ import annotations

from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    pin: o.PinArgument = None,
    quilt: o.QuiltOption = None,
    strip: o.StripOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")] = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Also list which patches move the hunks of later ones, and by how much.")
    ] = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Check headers, series and hunks, without a tree."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.lint.checks import UNREADABLE, lint
        from patchforge.reports.checking import lint_report

        series = targets.load(targets.Where(pin, project, quilt=quilt, strip=strip, quiet=quiet))
        problems = lint(series, targets.schema() if series.pin is not None else None)
        moved = []
        if offsets:
            from patchforge.lint.order import shifts
            from patchforge.series.parsed import parse_file

            moved = shifts([parse_file(file) for file in series.patches])
        return lint_report([p.name for p in series.patches], problems, strict, UNREADABLE, moved)

    return execute("lint", format, quiet, work)
