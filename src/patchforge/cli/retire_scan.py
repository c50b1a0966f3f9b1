"""``patchforge retire-scan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    pin: o.PinArgument = None,
    against: o.AgainstOption = None,
    all_newer: o.AllNewerOption = False,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="PATCH", help="Show the reasoning, and both texts, for one patch."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Drop what landed at high confidence and whose Retires-when agrees.")
    ] = False,
    fail_on: o.FailOnOption = None,
    git: o.GitOption = None,
    whole: o.WholeOption = False,
    pulls: o.PullsOption = None,
    repository: o.RepositoryOption = None,
    old: Annotated[
        Path | None, typer.Option("--old", metavar="DIR", help="Bare mode: the tree the series is for.")
    ] = None,
    new: Annotated[str | None, typer.Option("--new", metavar="DIR|REPO@REF", help="Bare mode: the later tree.")] = None,
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
    """Find patches that a later release has made unnecessary."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import pulling, retiring, scanning, targets
        from patchforge.errors import InputError
        from patchforge.reports.retiring import Judged, scan_report

        where = targets.Where(
            pin, project, old or tree, python, fetch, flavor, quilt, strip, quiet=quiet, fallback="pin"
        )
        series = targets.load(where)
        names = retiring.named(series, where, against, all_newer, old, new, git)
        if write and (series.pin is None or len(names) != 1):
            raise InputError("--write takes a project and one release", reason="usage")
        wanted = retiring.wanted(series, explain)
        said = pulling.asked(pulls, repository, series)
        found = scanning.scan_all(series, where, names, git=git, whole=whole, explain=wanted, pulls=said)
        decisions, removed = (None, ()) if not write else retiring.write(series, where, found[0])
        judged = [Judged(f.target, f.verdicts, f.cost, f.lost) for f in found]
        shown = tuple(block for f in found for block in f.explained)
        return scan_report(judged, [str(f) for f in fail_on or []], shown, decisions, removed)

    return execute("retire-scan", format, quiet, work)
