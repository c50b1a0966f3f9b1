"""``patchforge refresh``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The repository checkout made.", show_default=False)],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when something would change.")] = False,
    quilt: o.QuiltOption = None,
    strip: o.StripOption = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Write a checked-out series back to its patches."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.branch.back import read_branch, read_mark
        from patchforge.branch.git import existing
        from patchforge.branch.refresh import pristine_blobs, refreshed, write
        from patchforge.cli import targets
        from patchforge.cli.explaining import explaining
        from patchforge.errors import InputError
        from patchforge.reports.branching import refresh_report
        from patchforge.tree.target import open_bare

        repository = existing(directory.absolute())
        mark = read_mark(repository)
        pin = mark.get("pin")
        if (pin is None) != (quilt is not None):
            hint = "name it with --quilt DIR" if pin is None else "drop --quilt"
            raise InputError(
                f"{directory} was checked out {'from a bare series' if pin is None else f'for {pin}'}", hint=hint
            )
        series = targets.load(
            targets.Where(str(pin) if pin else None, project, quilt=quilt.absolute() if quilt else None, strip=strip)
        )
        schema = targets.schema() if series.pin is not None else None
        try:
            branch = read_branch(repository, series, schema)
            with explaining(pristine_blobs(repository, branch.base), series):
                done = refreshed(repository, series, branch, schema)
            if not check and done.files and not done.problems:
                with open_bare(series.project or series.directory, write=True) as target:
                    write(target, done, repository)
        finally:
            repository.close()
        return refresh_report(done, check)

    return execute("refresh", format, quiet, work)
