"""``patchforge mv``."""

from __future__ import annotations

from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    old: Annotated[str, typer.Argument(metavar="OLD", help="Which patch.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.", show_default=False)],
    pin: Annotated[str | None, typer.Option("--pin", metavar="PIN", help="Which pin; default: the newest.")] = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    fetch: o.FetchOption = False,
    flavor: o.FlavorOption = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Rename a patch."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.branch.rearrange import renamed
        from patchforge.cli import targets
        from patchforge.cli.rearranging import rearrange

        where = targets.Where(pin, project, tree, python, fetch, flavor, quiet=quiet, fallback="pin")
        return rearrange(
            "mv",
            where,
            lambda series, read: renamed(series, old, new, read, targets.schema()),
            f"renamed {old} to {new}",
        )

    return execute("mv", format, quiet, work)
