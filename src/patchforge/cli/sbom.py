"""``patchforge sbom``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    pin: o.PinArgument = None,
    flavor: Annotated[
        str | None,
        typer.Option("--flavor", metavar="NAME", help="Which of the pin's distributions; default: the first."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write it; default: standard output.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when FILE is out of date.")] = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Write the bill of materials, patches included."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.errors import InputError
        from patchforge.image.sbom import make_sbom
        from patchforge.reports.imaging import sbom_report
        from patchforge.series.files import replace_file
        from patchforge.series.imagepin import FIRST_EPOCH
        from patchforge.series.parsed import check_headers

        if check and out is None:
            raise InputError("--check compares with a file", reason="usage", hint="name it with --out FILE")
        series = targets.load(targets.Where(pin, project, quiet=quiet))
        assert series.pin is not None
        check_headers(series, targets.schema())
        chosen = series.pin.flavor(flavor)
        epoch = next((i.epoch for i in series.pin.images if i.flavor == chosen.name), FIRST_EPOCH)
        data = make_sbom(series, chosen, epoch, None, {})
        have = out.read_bytes() if out is not None and out.is_file() else b""
        outcome = "printed" if out is None else "current" if have == data else "stale" if check else "written"
        if outcome == "written":
            assert out is not None
            replace_file(out, data)
        return sbom_report([p.name for p in series.patches], outcome, data, None if out is None else str(out))

    return execute("sbom", format, quiet, work)
