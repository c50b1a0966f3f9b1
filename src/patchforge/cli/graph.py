"""``patchforge graph``."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from patchforge.cli import options as o


class Shape(enum.StrEnum):
    """How the graph is drawn."""

    list = "list"
    dot = "dot"
    mermaid = "mermaid"


def command(
    pin: o.PinArgument = None,
    shape: Annotated[Shape, typer.Option("--as", help="A list, or a drawing for Graphviz or Mermaid.")] = Shape.list,
    impact: Annotated[str | None, typer.Option("--impact", metavar="PATCH", help="What would removing it do?")] = None,
    tree: o.TreeOption = None,
    python: o.PythonOption = None,
    fetch: o.FetchOption = False,
    flavor: o.FlavorOption = None,
    quilt: o.QuiltOption = None,
    strip: o.StripOption = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Show which patch truly needs which."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.engine.apply import entry_of
        from patchforge.engine.files import pristine_files
        from patchforge.engine.plan import plan_series
        from patchforge.errors import InputError
        from patchforge.graph.edges import edges
        from patchforge.graph.impact import impact as impact_of
        from patchforge.reports.branching import plan_failed
        from patchforge.reports.graphing import graph_report, impact_report
        from patchforge.series.parsed import parse_series_patches

        where = targets.Where(pin, project, tree, python, fetch, flavor, quilt, strip, quiet=quiet, fallback="pin")
        series = targets.load(where)
        names = [p.name for p in series.patches]
        wanted = None
        if impact is not None:
            wanted = next((n for n in names if impact in (n, n.removesuffix(".patch"), f"{n}.patch")), None)
            if wanted is None:
                raise InputError(f"no patch '{impact}' in the series", reason="usage")
        parsed = parse_series_patches(series, targets.schema() if series.pin is not None else None)
        with targets.opened(where, series, write=False) as target:
            read = pristine_files(target)
            lock = series.lock if series.lock_is_current else None
            plan = plan_series((entry_of(item, lock) for item in parsed), read, names=names)
            if plan.failure is not None:
                return plan_failed("graph", plan, ())
            patches = [item.patch for item in parsed]
            headers = {item.file.name: item.header for item in parsed}
            required = {name: header.names("Requires") for name, header in headers.items() if header is not None}
            found = edges(patches, plan, required)
            if wanted is not None:
                return impact_report(wanted, names, impact_of(patches, wanted, plan, found, read))
        return graph_report(names, found, shape.value)

    return execute("graph", format, quiet, work)
