"""The reports of ``lint``, ``lock``, ``table``, ``check-table`` and ``init``."""

from __future__ import annotations

from collections import Counter

from patchforge.engine.model import Plan
from patchforge.errors import Problem
from patchforge.lint.order import Shift
from patchforge.reports.failures import detail_of, patch_document, problem_of
from patchforge.reports.model import Block, Cell, Grid, Line, Report, plural
from patchforge.table.check import TableCheck
from patchforge.table.folder import PagesCheck


def lint_report(
    names: list[str], problems: list[Problem], strict: bool, unreadable: frozenset[str], moved: list[Shift]
) -> Report:
    """Errors fail; warnings fail under ``strict``; a patch that cannot be read is status 2."""
    errors = [p for p in problems if p.severity == "error"]
    status = 2 if any(p.reason in unreadable for p in errors) else 1 if errors or (strict and problems) else 0
    per: Counter[str | None] = Counter(p.patch for p in problems)
    patches = tuple({"name": n, "result": "problems" if per[n] else "clean", "problems": per[n]} for n in names)
    warnings = len(problems) - len(errors)
    text = f"{plural(len(names), 'patch', 'patches')}: "
    text += f"{plural(len(errors), 'error')}, {plural(warnings, 'warning')}" if problems else "clean"
    blocks: list[Block] = []
    if moved:
        rows = tuple(
            (Cell(s.earlier), Cell(f"{s.lines:+d}"), Cell(s.later), Cell(plural(s.hunks, "hunk")), Cell(s.file, "dim"))
            for s in moved
        )
        blocks.append(Grid(("patch", "lines", "moves", "", ""), rows, (1,)))
    blocks.append(Line(text, "bad" if errors else "warn" if problems else "good"))
    shifted = [
        {"patch": s.earlier, "lines": s.lines, "moves": s.later, "file": s.file, "hunks": s.hunks} for s in moved
    ]
    fields = {"offsets": shifted} if moved else {}
    return Report("lint", status, patches, fields, tuple(blocks), tuple(problems))


def lock_report(
    plan: Plan, path: str, outcome: str, problems: tuple[Problem, ...], files: int, more: tuple[Line, ...] = ()
) -> Report:
    """``outcome``: ``written``, ``current`` (nothing to write), ``stale`` (under ``--check``) or ``failed``, which ``more``
    explains."""
    found = [*(problem_of(r.failure) for r in plan.results if r.failure), *problems]
    blocks: list[Block] = [line for r in plan.results if r.failure for line in detail_of(r.failure)]
    blocks += more
    words = {
        "written": (f"wrote {path}: {plural(len(plan.results), 'patch', 'patches')}, {plural(files, 'file')}", "good"),
        "current": (
            f"{path} is up to date: {plural(len(plan.results), 'patch', 'patches')}, {plural(files, 'file')}",
            "good",
        ),
        "stale": (f"{path} is out of date: run 'patchforge lock'", "bad"),
        "failed": (f"{path} was not written", "bad"),
    }
    blocks.append(Line(*words[outcome]))
    failure = plan.failure
    status = 0 if outcome in ("written", "current") else failure.status if failure else 1
    fields = {"outcome": outcome, "lock": path}
    return Report("lock", status, tuple(patch_document(r) for r in plan.results), fields, tuple(blocks), tuple(found))


def table_report(check: TableCheck, command: str, written: bool, pages: PagesCheck | None) -> Report:
    """The report of ``table`` (which wrote it) and ``check-table`` (which shows the difference)."""
    fields: dict[str, object] = {"changed": written} if command == "table" else {"diff": list(check.diff)}
    blocks: list[Block] = []
    if pages is not None:
        fields["pages"] = {"directory": pages.pages.directory, "stale": list(pages.stale), "left": list(pages.left)}
        blocks.append(_pages_line(pages, command))
    if command == "table":
        patches = tuple({"name": row.patch, "result": "listed"} for row in check.table.rows)
        text = "wrote the table in PATCHES.md" if written else "the table in PATCHES.md is up to date"
        return Report(command, 0, patches, fields, (Line(text, "good"), *blocks))
    problems = (*check.problems, *(pages.problems if pages else ()))
    wrong = {p.patch for p in problems}
    patches = tuple({"name": r.patch, "result": "differs" if r.patch in wrong else "listed"} for r in check.table.rows)
    if not check.diff:
        text = f"PATCHES.md is up to date: {plural(len(check.table.rows), 'patch', 'patches')}"
        blocks.insert(0, Line(text, "good"))
    styles = {"-": "del", "+": "add", "@": "head"}
    shown = tuple(Line(line, styles.get(line[:1], "")) for line in check.diff)
    return Report(command, 1 if problems else 0, patches, fields, (*shown, *blocks), problems)


def _pages_line(pages: PagesCheck, command: str) -> Line:
    """How the pages are, or were."""
    where = pages.pages.directory
    if not pages.stale and not pages.left:
        return Line(f"{where} is up to date: {plural(len(pages.pages.texts), 'page')}", "good")
    if command == "table":
        return Line(f"{where}: wrote {plural(len(pages.stale), 'page')}, removed {len(pages.left)}", "good")
    return Line(f"{where}: {plural(len(pages.stale), 'page')} out of date, {len(pages.left)} too many", "bad")


def init_report(files: tuple[str, ...], pin: str) -> Report:
    """The report of ``init``."""
    lines = [Line(f"started a series for {pin}", "good"), *(Line(f"  {file}") for file in files)]
    if ".github/workflows/patches.yml" not in files:
        lines.append(
            Line("  .github/workflows/patches.yml is there already: have it check this series too", "warn"),
        )
    lines.append(
        Line("next: put a patch in the series, then 'patchforge lock --fetch' and 'patchforge apply --fetch'", "dim")
    )
    return Report("init", 0, (), {"pin": pin, "files": list(files)}, tuple(lines))


def error_report(command: str, problems: tuple[Problem, ...], status: int, blocks: tuple[Block, ...] = ()) -> Report:
    """A command that could not do its work; ``blocks`` explain why."""
    return Report(command, status, (), {}, blocks, problems)
