"""``patchforge apply``."""

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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same without changing anything.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Forbid offsets: every hunk at its recorded line.")] = False,
    upto: Annotated[str | None, typer.Option("--upto", metavar="PATCH", help="Stop after this patch.")] = None,
    unlocked: Annotated[bool, typer.Option("--unlocked", help="Apply although lock.toml is out of date.")] = False,
    compile: Annotated[bool, typer.Option("--compile", help="Write fresh bytecode of the changed modules.")] = False,
    allow_version: o.AllowVersionOption = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Apply the whole series, or change nothing."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.engine.apply import ApplyOptions, apply_series
        from patchforge.engine.verify import verify
        from patchforge.reports.applying import apply_report
        from patchforge.reports.model import Line

        where = targets.Where(
            pin, project, tree, python, fetch, flavor, quilt, strip, allow_version, quiet, fallback="built"
        )
        series = targets.load(where)
        if allow_version:
            series = targets.unlocked(series)
        schema = targets.schema() if series.pin is not None else None
        with targets.opened(where, series, write=not dry_run) as target:
            done = apply_series(series, target, schema, ApplyOptions(dry_run, exact, unlocked, upto))
            verified = None
            if done.outcome == "applied" and upto is None and series.lock_is_current:
                verified = verify(series, target).result
            if compile and done.status == 0 and not dry_run:
                from patchforge.tree.bytecode import write

                write(target.root, [target.full(path) for path in done.changed], python)
            more: tuple[Line, ...] = ()
            if done.outcome == "failed":
                from patchforge.cli.explaining import explained

                more = explained(series, target, done)
            return apply_report(done, target.label, targets.shown(target.label), verified, more)

    return execute("apply", format, quiet, work)
