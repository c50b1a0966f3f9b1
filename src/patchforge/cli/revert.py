"""``patchforge revert``."""

from __future__ import annotations

from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    pin: o.PinArgument = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    fetch: o.FetchOption = False,
    flavor: o.FlavorOption = None,
    quilt: o.QuiltOption = None,
    strip: o.StripOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same without changing anything.")] = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Restore the exact pristine tree."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.engine.revert import revert_bare, revert_installed
        from patchforge.engine.unrecorded import as_locked, revert_locked
        from patchforge.reports.applying import revert_report

        where = targets.Where(pin, project, tree, python, fetch, flavor, quilt, strip, True, quiet, fallback="built")
        series = targets.load(where)
        with targets.opened(where, series, write=not dry_run) as target:
            if target.info is None:
                done = revert_bare(series, target, dry_run)
            elif target.state is None and series.lock is not None and as_locked(series.lock, target):
                done = revert_locked(series, target, dry_run)
            else:
                done = revert_installed(target, dry_run)
            return revert_report(done, target.label, targets.shown(target.label))

    return execute("revert", format, quiet, work)
