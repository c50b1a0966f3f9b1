"""``patchforge checkout``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to make the repository.", show_default=False)],
    pin: Annotated[str | None, typer.Option("--pin", metavar="PIN", help="Which pin; default: the newest.")] = None,
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
    """Make a git repository, one commit per patch."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.branch.out import check_out
        from patchforge.cli import targets
        from patchforge.engine.apply import plan_only
        from patchforge.engine.files import pristine_files
        from patchforge.reports.branching import checkout_report, plan_failed

        where = targets.Where(pin, project, tree, python, fetch, flavor, quilt, strip, quiet=quiet, fallback="pin")
        series = targets.load(where)
        schema = targets.schema() if series.pin is not None else None
        with targets.opened(where, series, write=False) as target, targets.progress(quiet) as show:
            plan, texts = plan_only(series, target, schema)
            if plan.failure is not None:
                from patchforge.cli.explaining import explained_on_pin

                more = explained_on_pin(series, plan.results, pristine_files(target), None)
                return plan_failed("checkout", plan, more)
            done = check_out(series, plan, target, texts, directory.absolute(), show)
        return checkout_report(done, [p.name for p in series.patches], targets.shown(str(done.directory)))

    return execute("checkout", format, quiet, work)
