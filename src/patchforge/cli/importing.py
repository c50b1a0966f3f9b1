"""``patchforge import``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|URL|-]", help="A diff, a mail, a mailbox; '-' is standard input.", show_default=False
        ),
    ] = None,
    series_dir: Annotated[
        Path | None,
        typer.Option("--series", metavar="DIR", help="Adopt a whole series: a quilt directory or a folder."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call the patch.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="PATCH", help="Where in the series; default: last.")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", metavar="DIR", help="The package's directory upstream; default: the pin's root."),
    ] = None,
    pin: Annotated[str | None, typer.Option("--pin", metavar="PIN", help="Which pin; default: the newest.")] = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    fetch: o.FetchOption = False,
    flavor: o.FlavorOption = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Take a patch in from a diff, mail or pull request."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.cli.explaining import explained_on_pin
        from patchforge.engine.files import pristine_files
        from patchforge.errors import InputError
        from patchforge.exchange.adopt import adopt
        from patchforge.exchange.take import take
        from patchforge.exchange.whole import take_series
        from patchforge.reports.exchanging import import_report
        from patchforge.tree.target import open_bare
        from patchforge.tree.transaction import Change

        where = targets.Where(pin, project, tree, python, fetch, flavor, quiet=quiet, fallback="pin")
        series = targets.load(where)
        assert series.pin is not None and series.project is not None
        if (source is None) == (series_dir is None):
            raise InputError("name one thing to take in: FILE, URL, '-', or --series DIR", reason="usage")
        if source is not None:
            whole, taken = None, take(_read(source), _label(source), series.pin, name, prefix)
        else:
            assert series_dir is not None
            if name is not None:
                raise InputError("--name is for one patch: those of a series keep their names", reason="usage")
            whole = take_series(series_dir, series.pin, prefix)
            taken = whole.taken
        with targets.opened(where, series, write=False) as target:
            read = pristine_files(target)
            adopted = adopt(series, taken, after, read, targets.schema(), whole)
            more = explained_on_pin(adopted.whole, adopted.plan.results, read, series)
        with open_bare(series.project, write=True) as home:
            changes = [Change(path, home.root.read(path), data) for path, data in adopted.files]
            home.transaction().run(changes, [], "import")
        return import_report(taken, adopted, more, whole.left_out if whole is not None else ())

    return execute("import", format, quiet, work)


def _label(source: str) -> str:
    """What the patch will say it was taken from: a URL, or a file's name without the directories of this machine."""
    if source == "-":
        return "standard input"
    return source if "://" in source else Path(source).name


def _read(source: str) -> bytes:
    """The bytes of ``source``.  Raises :class:`InputError`."""
    from patchforge.errors import InputError

    if source == "-":
        return sys.stdin.buffer.read()
    if source.startswith(("https://", "http://")):
        import urllib.request

        try:
            with urllib.request.urlopen(source, timeout=60) as answer:  # noqa: S310
                return bytes(answer.read(64 * 1024 * 1024))
        except OSError as error:
            raise InputError(f"cannot fetch it: {error}", reason="usage", file=source) from error
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror}", reason="usage", file=source) from error
