"""``patchforge lock``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchforge.cli import options as o

if TYPE_CHECKING:
    from patchforge.reports.model import Report


def command(
    pin: o.PinArgument = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    fetch: o.FetchOption = False,
    flavor: o.FlavorOption = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when lock.toml is out of date.")] = False,
    image: Annotated[
        bool, typer.Option("--image", help="The images' inputs instead: bases by digest, requirements by hash.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="NAME:TAG|LAYOUT", help="--image: pin this base of --flavor by its digest."),
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="--image: resolve again although nothing has changed.")
    ] = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Recompute lock.toml from the pinned release."""
    from patchforge.cli.session import execute

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.engine.files import pristine_files
        from patchforge.engine.locking import compute_lock
        from patchforge.errors import InputError
        from patchforge.reports.checking import lock_report
        from patchforge.series.files import replace_file
        from patchforge.series.lock import dump_lock

        if image and (tree is not None or python is not None or fetch):
            raise InputError("--image looks at no tree: drop --tree, --python, --fetch", reason="usage")
        if not image and (base is not None or refresh):
            raise InputError("--base and --refresh are about --image", reason="usage")
        if image:
            return _images(pin, project, flavor, base, check, refresh)
        where = targets.Where(pin, project, tree, python, fetch, flavor, quiet=quiet, fallback="pin")
        series = targets.load(where)
        assert series.pin is not None and series.project is not None
        path = series.project / "series" / series.pin.id / "lock.toml"
        label = path.relative_to(series.project).as_posix()
        with targets.opened(where, series, write=False) as target:
            lock, plan, problems = compute_lock(series, target, targets.schema())
            if lock is None:
                from patchforge.cli.explaining import explained_on_pin

                more = explained_on_pin(series, plan.results, pristine_files(target), None)
                return lock_report(plan, label, "failed", problems, 0, more)
        data = dump_lock(lock)
        have = path.read_bytes() if path.exists() else b""
        outcome = "current" if have == data else "stale" if check else "written"
        if outcome == "written":
            replace_file(path, data)
        return lock_report(plan, label, outcome, problems, len(lock.files))

    return execute("lock", format, quiet, work)


def _images(
    pin: str | None, project: Path | None, flavor: str | None, base: str | None, check: bool, refresh: bool
) -> Report:
    from patchforge.cli import targets
    from patchforge.cli.locking import lock_images
    from patchforge.reports.imaging import image_lock_report

    series = targets.load(targets.Where(pin, project))
    files = lock_images(series, flavor, base, check, refresh)
    return image_lock_report(files, [p.name for p in series.patches])
