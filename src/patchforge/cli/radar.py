"""``patchforge radar``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    pin: o.PinArgument = None,
    against: o.AgainstOption = None,
    fail_on: o.FailOnOption = None,
    git: o.GitOption = None,
    whole: o.WholeOption = False,
    old: Annotated[
        Path | None, typer.Option("--old", metavar="DIR", help="Bare mode: the tree the series is for.")
    ] = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    fetch: o.FetchOption = False,
    flavor: o.FlavorOption = None,
    quilt: o.QuiltOption = None,
    strip: o.StripOption = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Show what each later release does to each patch."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import retiring, scanning, targets
        from patchforge.reports.retiring import Judged, radar_report

        where = targets.Where(
            pin, project, old or tree, python, fetch, flavor, quilt, strip, quiet=quiet, fallback="pin"
        )
        series = targets.load(where)
        names = retiring.radar_named(series, where, against, old, git)
        found = scanning.scan_all(series, where, names, git=git, whole=whole)
        judged = [Judged(f.target, f.verdicts, f.cost, f.lost) for f in found]
        return radar_report(judged, [str(f) for f in fail_on or []])

    return execute("radar", format, quiet, work)
