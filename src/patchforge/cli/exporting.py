"""``patchforge export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    patches: Annotated[
        list[str] | None, typer.Argument(metavar="[PATCH]...", help="Which; default: all.", show_default=False)
    ] = None,
    mbox: Annotated[
        Path | None, typer.Option("--mbox", metavar="FILE", help="The mailbox to write; default: print it.")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", metavar="DIR", help="The package's directory upstream; default: the pin's root."),
    ] = None,
    pin: Annotated[str | None, typer.Option("--pin", metavar="PIN", help="Which pin; default: the newest.")] = None,
    quilt: o.QuiltOption = None,
    strip: o.StripOption = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Write the patches as a mailbox for git am."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.errors import InputError
        from patchforge.exchange.mbox import author_of, mailbox
        from patchforge.reports.exchanging import export_report
        from patchforge.series.files import replace_file
        from patchforge.series.parsed import parse_series_patches

        series = targets.load(targets.Where(pin, project, quilt=quilt, strip=strip))
        parsed = parse_series_patches(series, targets.schema() if series.pin is not None else None)
        wanted = {name.removesuffix(".patch") for name in patches or []}
        unknown = wanted - {p.file.name.removesuffix(".patch") for p in parsed}
        if unknown:
            raise InputError(f"no patch '{sorted(unknown)[0]}' in the series", reason="usage")
        chosen = [p for p in parsed if not wanted or p.file.name.removesuffix(".patch") in wanted]
        inside = prefix if prefix is not None else series.pin.root if series.pin is not None else ""
        inside = inside.rstrip("/")
        if ".." in inside.split("/") or inside.startswith("/"):
            raise InputError(f"--prefix {inside} is no directory of a repository", reason="usage")
        data = mailbox([(p.patch, p.file.data, p.header) for p in chosen], inside)
        if mbox is None:
            import sys

            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return Report("export", 0)
        if mbox.is_file() and not mbox.read_bytes().startswith(b"From "):
            raise InputError("it exists, and is no mailbox", reason="exists", file=str(mbox), hint="name another file")
        replace_file(mbox.absolute(), data)
        nobody = [p.file.name for p in chosen if p.header is not None and not author_of(p.header)]
        return export_report([p.file.name for p in chosen], str(mbox), nobody)

    return execute("export", format if mbox is not None else "text", quiet, work)
