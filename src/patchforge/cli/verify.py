"""``patchforge verify``."""

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
    full: Annotated[
        bool, typer.Option("--full", help="Also hash every other file the distribution installed.")
    ] = False,
    allow_version: o.AllowVersionOption = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Prove what is installed, or fail."""
    from patchforge.cli.status import look

    where = (pin, project, tree, python, fetch, flavor, quilt, strip, allow_version, quiet)
    return look("verify", where, full, format, quiet)
