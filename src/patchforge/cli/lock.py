"""``patchforge lock``."""

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
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when lock.toml is out of date.")] = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Recompute lock.toml from the pinned release."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.engine.locking import compute_lock
        from patchforge.reports.checking import lock_report
        from patchforge.series.files import replace_file
        from patchforge.series.lock import dump_lock

        where = targets.Where(pin, project, tree, python, fetch, flavor, quiet=quiet)
        series = targets.load(where)
        assert series.pin is not None and series.project is not None
        path = series.project / "series" / series.pin.id / "lock.toml"
        label = path.relative_to(series.project).as_posix()
        with targets.opened(where, series, write=False) as target:
            lock, plan, problems = compute_lock(series, target, targets.schema())
        if lock is None:
            return lock_report(plan, label, "failed", problems, 0)
        data = dump_lock(lock)
        have = path.read_bytes() if path.exists() else b""
        outcome = "current" if have == data else "stale" if check else "written"
        if outcome == "written":
            replace_file(path, data)
        return lock_report(plan, label, outcome, problems, len(lock.files))

    return execute("lock", format, quiet, work)
