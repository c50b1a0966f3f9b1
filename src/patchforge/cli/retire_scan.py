"""``patchforge retire-scan``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


class FailOn(enum.StrEnum):
    """Verdicts ``--fail-on`` may name."""

    landed = "landed"
    changed = "landed-changed"
    partial = "partial"
    conflict = "conflict"


def command(
    pin: o.PinArgument = None,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="VERSION|WHEEL|DIR", help="A later release; may be given several times."),
    ] = None,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="PATCH", help="Show the reasoning for one patch.")
    ] = None,
    fail_on: Annotated[list[FailOn] | None, typer.Option("--fail-on", help="Exit with 1 on this verdict.")] = None,
    old: Annotated[
        Path | None, typer.Option("--old", metavar="DIR", help="Bare mode: the tree the series is for.")
    ] = None,
    new: Annotated[Path | None, typer.Option("--new", metavar="DIR", help="Bare mode: the later tree.")] = None,
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
        from patchforge.cli import scanning, targets
        from patchforge.errors import InputError
        from patchforge.reports.retiring import scan_report

        where = targets.Where(pin, project, old or tree, python, fetch, flavor, quilt, strip, quiet=quiet)
        series = targets.load(where)
        if series.pin is None:
            if old is None or new is None or against:
                raise InputError("a bare series takes --old DIR and --new DIR", reason="usage")
            names = [str(new)]
        elif old is not None or new is not None:
            raise InputError("--old and --new are for a bare series: use --tree and --against", reason="usage")
        elif not against:
            raise InputError("name a release: --against VERSION, a wheel or a directory", reason="usage")
        else:
            names = against
        found = scanning.scan_all(series, where, names)
        known = [p.name for p in series.patches]
        if explain is not None and explain not in known and f"{explain}.patch" not in known:
            raise InputError(f"no patch '{explain}' in the series", reason="usage")
        return scan_report(found, [str(f) for f in fail_on or []], explain)

    return execute("retire-scan", format, quiet, work)
