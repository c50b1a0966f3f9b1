"""The work ``drop`` and ``mv`` share."""

from __future__ import annotations

from collections.abc import Callable

from patchforge.branch.derived import Files
from patchforge.cli import targets
from patchforge.cli.explaining import explaining
from patchforge.engine.files import pristine_files
from patchforge.engine.model import Reader
from patchforge.reports.branching import rearranged_report
from patchforge.reports.model import Report
from patchforge.series.project import Series
from patchforge.tree.target import open_bare
from patchforge.tree.transaction import Change


def rearrange(command: str, where: targets.Where, work: Callable[[Series, Reader], Files], what: str) -> Report:
    """Compute the project's new files on the pristine tree ``where`` names, and write all of them or none."""
    return rearranged_report(command, rewrite(targets.load(where), where, work, what), what)


def rewrite(series: Series, where: targets.Where, work: Callable[[Series, Reader], Files], what: str) -> Files:
    """Write the files ``work`` computes, all of them or none; return them."""
    assert series.project is not None
    with targets.opened(where, series, write=False) as target:
        read = pristine_files(target)
        with explaining(read, series):
            files = work(series, read)
    with open_bare(series.project, write=True) as home:
        changes = [Change(path, home.root.read(path), data) for path, data in sorted(files.items())]
        home.transaction().run(changes, [], what)
    return files
