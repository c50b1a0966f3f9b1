"""The reports of ``graph``."""

from __future__ import annotations

from patchforge.graph.edges import Edge, as_dot, as_mermaid, layers
from patchforge.graph.impact import Impact
from patchforge.reports.model import Block, Cell, Grid, Line, Report, plural


def graph_report(names: list[str], found: tuple[Edge, ...], shape: str) -> Report:
    """The dependencies, as a list or as a drawing."""
    needs = {name: [e for e in found if e.later == name] for name in names}
    patches = tuple(
        {
            "name": name,
            "result": "needs" if needs[name] else "free",
            "needs": [{"patch": e.earlier, "kind": e.kind, "what": e.what} for e in needs[name]],
        }
        for name in names
    )
    groups = layers(names, found)
    blocks: list[Block]
    if shape == "dot":
        blocks = [Line(as_dot(names, found))]
    elif shape == "mermaid":
        blocks = [Line(as_mermaid(names, found))]
    else:
        rows = tuple((Cell(e.later), Cell(e.earlier), Cell(e.kind, "dim"), Cell(e.what, "dim")) for e in found)
        blocks = [Grid(("patch", "needs", "because of", ""), rows)] if rows else []
        free = sum(not needs[name] for name in names)
        blocks.append(
            Line(
                f"{plural(len(names), 'patch', 'patches')}, {free} of which need no other; "
                f"{plural(len(found), 'dependency', 'dependencies')}"
            )
        )
        if len(groups) > 1:
            blocks.append(Line("within each of these groups any order is safe:", "dim"))
            blocks += [Line(f"  {number}. {', '.join(group)}") for number, group in enumerate(groups, 1)]
        elif names:
            blocks.append(Line("any order is safe", "dim"))
    return Report("graph", 0, patches, {"groups": groups}, tuple(blocks))


def impact_report(removed: str, names: list[str], felt: list[Impact]) -> Report:
    """What the removal of a patch would do."""
    styles = {"breaks": "bad", "follows": "bad", "loses": "bad", "moves": "warn"}
    by_name = {item.name: item for item in felt}
    patches = tuple(
        {"name": n, "result": by_name[n].result, "what": by_name[n].what}
        if n in by_name
        else {"name": n, "result": "removed" if n == removed else "unaffected"}
        for n in names
    )
    rows = tuple((Cell(i.name), Cell(i.result, styles[i.result]), Cell(i.what, "dim")) for i in felt)
    blocks: list[Block] = [Grid(("patch", "without it", ""), rows)] if rows else []
    harmed = sum(i.result != "moves" for i in felt)
    blocks.append(
        Line(
            f"without {removed}: {plural(harmed, 'patch', 'patches')} would be harmed"
            if harmed
            else f"{removed} can be dropped",
            "bad" if harmed else "good",
        )
    )
    return Report("graph", 0, patches, {"impact": removed}, tuple(blocks))
