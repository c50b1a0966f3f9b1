"""Putting taken-in patches into a project: into the series when they apply and are complete, beside it when not."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from patchforge.branch.derived import Files, lock_and_table
from patchforge.branch.order import rewritten
from patchforge.engine.model import Entry, Failure, Plan, Reader
from patchforge.engine.plan import plan_series
from patchforge.errors import InputError
from patchforge.exchange.take import Taken
from patchforge.exchange.whole import Whole
from patchforge.series.names import check_name, free_name
from patchforge.series.parsed import Schema, parse_file
from patchforge.series.project import PatchFile, Series


@dataclass(frozen=True, slots=True)
class Adopted:
    """What taking in comes to: the files to write, relative to the project; whether the series lists the patches now; the
    ``whole`` series with them, and the plan of it."""

    files: tuple[tuple[str, bytes | None], ...]
    listed: bool
    whole: Series
    plan: Plan

    @property
    def failure(self) -> Failure | None:
        """The failure of the first patch that does not apply."""
        return self.plan.failure


def adopt(
    series: Series, taken: list[Taken], after: str | None, read: Reader, schema: Schema, adopted: Whole | None = None
) -> Adopted:
    """Compute the files; nothing is written.  Raises :class:`InputError` for a name that is taken.

    An ``adopted`` series is listed in its order, with its comments, even before its headers are complete: the order is part
    of what it says.
    """
    assert series.project is not None and series.pin is not None
    root = series.project
    files: Files = {}
    new: list[PatchFile] = []
    for item in taken:
        check_name(item.name)
        free_name(item.name, [*(p.name for p in series.patches), *(p.name for p in new)])
        path = series.directory / f"{item.name}.patch"
        label = path.relative_to(root).as_posix()
        if path.exists():
            raise InputError(
                "the project has a patch of this name",
                reason="exists",
                file=label,
                hint="remove it, or choose another with --name"
                if adopted is None
                else "rename or remove one of the two",
            )
        files[label] = item.data
        digest = hashlib.sha256(item.data).hexdigest()
        new.append(PatchFile(item.name, label, path, series.pin.strip, item.data, digest))
    at = len(series.patches)
    if after is not None:
        names = [p.name for p in series.patches]
        wanted = after.removesuffix(".patch")
        if wanted not in names:
            raise InputError(f"no patch '{after}' in the series", reason="usage")
        at = names.index(wanted) + 1
    whole = replace(series, patches=(*series.patches[:at], *new, *series.patches[at:]), lock=None)
    entries = (Entry(parse_file(file)) for file in whole.patches)
    plan = plan_series(entries, read, names=[p.name for p in whole.patches])
    incomplete = plan.failure is not None or any(item.missing for item in taken)
    if incomplete and adopted is None:
        return Adopted(tuple(files.items()), False, whole, plan)
    order = Path("series") / series.pin.id / "series"
    old_names = [p.path.name for p in series.patches]
    text = (root / order).read_bytes().decode("utf-8")
    text = rewritten(text, old_names, [p.path.name for p in whole.patches], {})
    if adopted is not None:
        text = _commented(text, adopted, new)
    files[order.as_posix()] = text.encode()
    if incomplete:
        return Adopted(tuple(files.items()), True, whole, plan)
    _, problems = lock_and_table(files, whole, read, schema)
    if problems:
        raise InputError(problems[0].message, reason=problems[0].reason, file=problems[0].file)
    return Adopted(tuple(files.items()), True, whole, plan)


def _commented(text: str, adopted: Whole, new: list[PatchFile]) -> str:
    """The series file ``text`` with what the adopted one says above its patches, beside them and below."""
    for number, patch in enumerate(new):
        bare = f"{patch.path.name}\n"
        below = adopted.comments.get(len(new), []) if number == len(new) - 1 else []
        before, found, after = f"\n{text}".partition(f"\n{bare}")
        assert found
        text = f"{before}\n{adopted.line(number, patch.path.name)}{''.join(below)}{after}".removeprefix("\n")
    return text
