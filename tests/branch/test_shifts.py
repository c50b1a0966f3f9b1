"""The offsets lint foretells are those planning finds when the earlier patch is left out."""

from __future__ import annotations

from hypothesis import given, settings
from test_graph import CHANGES, planned, read, series

from patchforge.engine.model import Entry
from patchforge.engine.plan import plan_series
from patchforge.lint.order import shifts


@settings(max_examples=200, deadline=None)
@given(CHANGES)
def test_foretold_offsets_are_the_real_ones(changes: list[tuple[str, int, list[bytes]]]) -> None:
    changes = [
        (name, at, [line + b" %d %d" % (n, k) for k, line in enumerate(lines)])
        for n, (name, at, lines) in enumerate(changes)
    ]
    patches = series(changes)
    if planned(patches).failure is not None:
        return
    for removed in patches:
        left = [p for p in patches if p is not removed]
        plan = plan_series((Entry(p) for p in left), read, names=[p.name for p in left])
        foretold = {(s.later, s.file): -s.lines for s in shifts(patches) if s.earlier == removed.name}
        real = {(r.name, offset.file): offset.offset for r in plan.results for offset in r.offsets}
        if plan.failure is None:
            assert {key: lines for key, lines in foretold.items() if lines} == real
