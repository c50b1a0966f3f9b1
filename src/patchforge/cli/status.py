"""``patchforge status``, and the work it shares with ``verify``."""

from __future__ import annotations

from typing import Any

from patchforge.cli import options as o


def command(
    pin: o.PinArgument = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    fetch: o.FetchOption = False,
    flavor: o.FlavorOption = None,
    quilt: o.QuiltOption = None,
    strip: o.StripOption = None,
    allow_version: o.AllowVersionOption = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Say what is installed, patch by patch."""
    where = (pin, project, tree, python, fetch, flavor, quilt, strip, allow_version, quiet)
    return look("status", where, False, format, quiet)


def look(command: str, where_options: tuple[Any, ...], full: bool, format: str, quiet: bool) -> int:
    """Compare the tree with the series and report."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from dataclasses import replace

        from patchforge.cli import targets
        from patchforge.engine.verify import full_check, verify
        from patchforge.reports.verifying import verify_report

        where = replace(targets.Where(*where_options), fallback="built")
        series = targets.load(where)
        with targets.opened(where, series, write=False) as target:
            verified = verify(series, target)
            extra = tuple(full_check(target, {f.path for f in verified.files})) if full and target.info else ()
            return verify_report(command, verified, target.label, targets.shown(target.label), extra)

    return execute(command, format, quiet, work)
