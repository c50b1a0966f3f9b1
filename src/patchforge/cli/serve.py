"""``patchforge serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    mode: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODE]", help="Which mode, by name or letter; docs/serving.md lists them.", show_default=False
        ),
    ] = None,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the configuration and the exact command, and start nothing.")
    ] = False,
    assign: Annotated[
        list[str] | None, typer.Option("--set", metavar="KNOB=VALUE", help="Set a knob; may be given several times.")
    ] = None,
    knobs: Annotated[bool, typer.Option("--knobs", help="List the modes and every knob, as Markdown.")] = False,
    modes: Annotated[
        Path | None, typer.Option("--modes", metavar="FILE", help="Another modes table than the one that ships.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also hash every other file the distribution installed, before starting.")
    ] = False,
    pin: Annotated[
        str | None, typer.Option("--pin", metavar="PIN", help="Which pin, NAME-VERSION; default: the newest.")
    ] = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Verify the installed tree, then become the server."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import serving
        from patchforge.cli.targets import Where

        if knobs:
            return serving.list_knobs(modes)
        where = Where(pin, project, tree, python, quiet=quiet)
        return serving.serve(mode, where, tuple(assign or ()), modes, full, print_only, format)

    return execute("serve", format, quiet, work)
