"""``patchforge init``."""

from __future__ import annotations

from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    release: Annotated[str, typer.Argument(metavar="NAME==VERSION", help="The release to cut patches against.")],
    root: Annotated[
        str | None, typer.Option("--root", metavar="PACKAGE", help="The package the patches are relative to.")
    ] = None,
    strip: Annotated[
        int, typer.Option("-p", "--strip", metavar="N", help="Strip level of the patches.", min=0, max=20)
    ] = 1,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Start a series for any distribution."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from pathlib import Path

        from patchforge.cli.starting import start
        from patchforge.reports.checking import init_report

        base = project or Path.cwd()
        pin, files = start(release, root, strip, base, quiet)
        return init_report(tuple(files), pin)

    return execute("init", format, quiet, work)
