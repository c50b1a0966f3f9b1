"""The reports of ``checkout`` and ``refresh``."""

from __future__ import annotations

from patchforge.branch.derived import Files
from patchforge.branch.out import CheckedOut
from patchforge.branch.refresh import Refreshed
from patchforge.engine.model import Plan
from patchforge.reports.failures import detail_of, patch_document, problem_of
from patchforge.reports.model import Block, Cell, Grid, Line, Report, plural


def plan_failed(command: str, plan: Plan, more: tuple[Line, ...]) -> Report:
    """A command that needs the whole series to apply, and it does not; ``more`` explains why."""
    failure = plan.failure
    assert failure is not None
    return Report(
        command,
        failure.status,
        tuple(patch_document(r) for r in plan.results),
        {},
        (*detail_of(failure), *more),
        (problem_of(failure),),
    )


def checkout_report(done: CheckedOut, names: list[str], where: str) -> Report:
    """The report of ``checkout``."""
    lines = (
        Line(
            f"checked out {plural(done.patches, 'patch', 'patches')} as commits on {plural(done.files, 'file')} in {where}",
            "good",
        ),
        Line("edit them with git (rebase -i pristine), then 'patchforge refresh' writes them back", "dim"),
    )
    fields = {"directory": str(done.directory), "base": done.base, "tip": done.tip, "files": done.files}
    return Report("checkout", 0, tuple({"name": n, "result": "checked-out"} for n in names), fields, lines)


_STYLES = {"kept": "dim", "changed": "warn", "new": "good", "renamed": "warn"}


def refresh_report(done: Refreshed, check: bool) -> Report:
    """The report of ``refresh``; with ``check``, anything that would change fails."""
    patches = [
        {"name": p.name, "result": p.result, **({"was": p.was} if p.was else {}), "commit": p.commit}
        for p in done.patches
    ]
    patches += [{"name": name, "result": "dropped"} for name in done.dropped]
    blocks: list[Block] = []
    shown = [p for p in done.patches if p.result != "kept"]
    if shown or done.dropped:
        rows = [
            (
                Cell(p.name),
                Cell(p.result, _STYLES[p.result]),
                Cell(p.commit[:10], "dim"),
                Cell(f"was {p.was}" if p.was else "", "dim"),
            )
            for p in shown
        ]
        rows += [(Cell(name), Cell("dropped", "bad"), Cell(""), Cell("")) for name in done.dropped]
        blocks.append(Grid(("patch", "result", "commit", ""), tuple(rows)))
    kept = len(done.patches) - len(shown)
    bad = bool(done.problems) or (check and bool(done.files))
    if not done.files:
        text = f"up to date: {plural(kept, 'patch', 'patches')} as they are"
    elif done.problems:
        text = "nothing was written"
    elif check:
        text = f"{plural(len(done.files), 'file')} would change: {', '.join(path for path, _ in done.files)}"
    else:
        text = f"wrote {plural(len(done.files), 'file')}: {', '.join(path for path, _ in done.files)}"
    blocks.append(Line(text, "bad" if bad else "good"))
    fields = {"files": [{"path": path, "removed": data is None} for path, data in done.files]}
    return Report("refresh", 1 if bad else 0, tuple(patches), fields, tuple(blocks), done.problems)


def rearranged_report(command: str, files: Files, what: str) -> Report:
    """The report of ``drop`` and ``mv``."""
    fields = {"files": [{"path": path, "removed": data is None} for path, data in sorted(files.items())]}
    return Report(command, 0, (), fields, (Line(f"{what}: {', '.join(sorted(files))}", "good"),))
