"""What removing a patch would do to the others, by planning the series without it."""

from __future__ import annotations

from dataclasses import dataclass

from patchforge.diff import Patch
from patchforge.engine.model import Entry, Failure, Plan, Reader
from patchforge.engine.plan import plan_series
from patchforge.graph.edges import Edge


@dataclass(frozen=True, slots=True)
class Impact:
    """One patch that feels the removal.  ``result``: ``breaks`` (it no longer applies), ``follows`` (it breaks because a
    broken one is gone too), ``moves`` (it lands elsewhere) or ``loses`` (it applies, and uses a name that is gone)."""

    name: str
    result: str
    what: str


def impact(patches: list[Patch], removed: str, whole: Plan, found: tuple[Edge, ...], read: Reader) -> list[Impact]:
    """Plan without ``removed``; what breaks is taken out too, so that everything it drags along is found."""
    out: list[Impact] = []
    gone = {removed}
    while True:
        left = [patch for patch in patches if patch.name not in gone]
        plan = plan_series((Entry(patch) for patch in left), read, names=[p.name for p in left])
        failure = plan.failure
        if failure is None:
            break
        needs = {e.earlier for e in found if e.later == failure.patch}
        follows = bool(out) and removed not in needs and bool(needs & gone)
        out.append(Impact(failure.patch, "follows" if follows else "breaks", _said(failure)))
        gone.add(failure.patch)
    before = {r.name: {(o.file, o.hunk): o.offset for o in r.offsets} for r in whole.results}
    for result in plan.results:
        now = {(o.file, o.hunk): o.offset for o in result.offsets}
        names = sorted(e.what for e in found if e.later == result.name and e.earlier in gone and e.kind == "name")
        if names:
            out.append(Impact(result.name, "loses", ", ".join(names)))
        elif now != before[result.name]:
            places = ", ".join(f"{file} hunk {hunk} {now[file, hunk]:+d}" for file, hunk in sorted(now))
            out.append(Impact(result.name, "moves", places))
    rank = {patch.name: number for number, patch in enumerate(patches)}
    return sorted(out, key=lambda item: rank[item.name])


def _said(failure: Failure) -> str:
    place = f"{failure.file}, hunk {failure.hunk}: " if failure.file and failure.hunk else ""
    return place + failure.message
