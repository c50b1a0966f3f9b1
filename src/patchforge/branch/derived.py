"""The files of a project that follow from its patches: lock, table and pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from patchforge.engine.locking import lock_on
from patchforge.engine.model import Failure, Plan, Reader
from patchforge.errors import InputError, Problem
from patchforge.series.lock import dump_lock
from patchforge.series.parsed import Schema
from patchforge.series.project import Series
from patchforge.table.document import NAME, find_table, make_table
from patchforge.table.folder import check_pages
from patchforge.table.pages import asked_for, make_pages

Files = dict[str, bytes | None]
"""Files to write, relative to the project; ``None``: to remove."""


class Unfit(InputError):
    """A patch of ``series`` does not apply to the pin any more; ``plan`` says how far it got."""

    def __init__(self, series: Series, plan: Plan, failure: Failure) -> None:
        before = next(n for n, r in enumerate(plan.results) if r.failure is not None)
        after = f"after '{plan.results[before - 1].name}'" if before else "to the pristine release"
        super().__init__(
            f"patch '{failure.patch}' would not apply {after}: {failure.message}",
            reason=failure.reason,
            file=failure.patch_file,
            line=failure.line,
            hint=failure.hint,
            patch=failure.patch,
        )
        self.status = failure.status
        self.series, self.plan, self.failure = series, plan, failure


def keep(files: Files, root: Path, path: str, data: bytes) -> None:
    """Note ``path`` when it is not yet ``data``."""
    target = root / path
    if not target.is_file() or target.read_bytes() != data:
        files[path] = data


def lock_and_table(files: Files, series: Series, read: Reader, schema: Schema) -> tuple[Plan, tuple[Problem, ...]]:
    """Add what lock.toml, PATCHES.md and the pages it asks for must be for ``series`` on the pristine files behind ``read``.

    Raises :class:`Unfit` when a patch does not apply; problems with the results are returned, and nothing is added.
    """
    assert series.pin is not None and series.project is not None
    root = series.project
    lock, plan, problems = lock_on(series, read, schema)
    failure = plan.failure
    if failure is not None:
        raise Unfit(series, plan, failure)
    if lock is None:
        return plan, problems
    keep(files, root, f"series/{series.pin.id}/lock.toml", dump_lock(lock))
    table(files, replace(series, lock=lock), schema)
    return plan, ()


def table(files: Files, series: Series, schema: Schema) -> None:
    """Add what PATCHES.md must be for ``series``, where there is one, and the pages it asks for."""
    assert series.pin is not None and series.project is not None
    root = series.project
    if not (root / NAME).is_file():
        return
    document = (root / NAME).read_bytes().decode("utf-8")
    place = find_table(document, series.pin.id)
    text = place.before + make_table(series, schema).text + place.after
    keep(files, root, NAME, text.encode())
    directory = asked_for(document, series.pin.id)
    if directory is not None:
        check = check_pages(root, make_pages(series, schema, directory))
        files |= {f"{directory}/{name}": check.pages.texts[name].encode() for name in check.stale}
        files |= {f"{directory}/{name}": None for name in check.left}
