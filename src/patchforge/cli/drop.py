"""``patchforge drop``."""

from __future__ import annotations

from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    name: Annotated[str, typer.Argument(metavar="PATCH", help="Which patch.", show_default=False)],
    pin: Annotated[str | None, typer.Option("--pin", metavar="PIN", help="Which pin; default: the newest.")] = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    fetch: o.FetchOption = False,
    flavor: o.FlavorOption = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Take a patch out of the series."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.branch.rearrange import dropped
        from patchforge.cli import targets
        from patchforge.cli.rearranging import rearrange

        where = targets.Where(pin, project, tree, python, fetch, flavor, quiet=quiet, fallback="pin")
        return rearrange(
            "drop", where, lambda series, read: dropped(series, name, read, targets.schema()), f"dropped {name}"
        )

    return execute("drop", format, quiet, work)
