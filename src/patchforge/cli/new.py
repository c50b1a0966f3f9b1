"""``patchforge new``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call the patch.", show_default=False)],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The repository checkout made.", show_default=False)],
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Write the message of a new patch's commit."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge import resources
        from patchforge.branch.back import read_mark
        from patchforge.branch.git import existing
        from patchforge.cli import targets
        from patchforge.errors import InputError
        from patchforge.reports.exchanging import new_report
        from patchforge.series.names import check_name, free_name
        from patchforge.series.project import find_project

        wanted = check_name(name.removesuffix(".patch"))
        repository = existing(directory.absolute())
        pin_name = read_mark(repository).get("pin")
        if pin_name is None:
            raise InputError("a bare series has no headers: commit with any message", reason="usage")
        series = targets.load(targets.Where(str(pin_name), project or find_project(Path.cwd()).root))
        assert series.pin is not None
        if any(p.name == wanted for p in series.patches):
            raise InputError(f"the series has a patch '{wanted}'", reason="exists")
        free_name(wanted, (p.name for p in series.patches))
        text = resources.template("commit").replace("@NAME@", wanted)
        text = text.replace("@RELEASE@", f"{series.pin.distribution} {series.pin.version}")
        path = repository.dot_git / "patchforge-message"
        path.write_text(text)
        return new_report(wanted, targets.shown(str(directory.absolute())))

    return execute("new", format, quiet, work)
