"""The reports of ``apply`` and ``revert``."""

from __future__ import annotations

from patchforge.engine.apply import Applied
from patchforge.engine.model import PatchResult
from patchforge.engine.revert import Reverted
from patchforge.errors import Problem
from patchforge.reports.failures import detail_of, patch_document, problem_of
from patchforge.reports.model import Block, Cell, Grid, Line, Report, plural

_WORDS = {
    "applied": ("applied", "good"),
    "offset": ("offset", "warn"),
    "already": ("already", "dim"),
    "failed": ("failed", "bad"),
    "not-reached": ("not reached", "dim"),
    "reverted": ("reverted", "good"),
    "pristine": ("pristine", "dim"),
}


def apply_report(
    applied: Applied, tree: str, where: str, verified: str | None = None, more: tuple[Line, ...] = ()
) -> Report:
    """The report of an apply on ``tree``, called ``where`` for people; ``verified`` is the verdict of the check after it.

    ``more`` explains a failure further.
    """
    problems = [*(problem_of(r.failure) for r in applied.results if r.failure), *applied.problems]
    status = applied.status
    count, files = len(applied.results), len(applied.changed)
    blocks: list[Block] = []
    if applied.outcome == "already":
        blocks.append(Line(f"already applied: {plural(count, 'patch', 'patches')} in {where}", "good"))
    else:
        blocks += [_grid(applied.results), *_details(applied.results), *more]
        count = sum(r.result != "already" for r in applied.results)
        last = {
            "applied": (f"applied {plural(count, 'patch', 'patches')} to {plural(files, 'file')} in {where}", "good"),
            "would-apply": (
                f"would apply {plural(count, 'patch', 'patches')} to {plural(files, 'file')} in {where}; nothing was changed",
                "good",
            ),
            "failed": (f"nothing was changed in {where}", "bad"),
        }[applied.outcome]
        blocks.append(Line(*last))
    if verified is not None:
        right = verified in ("applied", "empty")
        blocks.append(
            Line(
                f"verified: {plural(files, 'file')} as locked" if right else f"verify says: {verified}",
                "good" if right else "bad",
            )
        )
        if not right:
            status = 1
    return Report(
        "apply",
        status,
        tuple(patch_document(r) for r in applied.results),
        {"outcome": applied.outcome, "tree": tree, "changed": list(applied.changed)},
        tuple(blocks),
        tuple(problems),
        applied.notes,
    )


def revert_report(reverted: Reverted, tree: str, where: str) -> Report:
    """The report of a revert."""
    count, files = len(reverted.results), len(reverted.changed)
    problems: list[Problem] = [*(problem_of(r.failure) for r in reverted.results if r.failure), *reverted.problems]
    done = f"{plural(count, 'patch', 'patches')} from {plural(files, 'file')} in {where}"
    last = {
        "reverted": (f"reverted {done}: the tree is pristine", "good"),
        "would-revert": (f"would revert {done}; nothing was changed", "good"),
        "pristine": (f"nothing to revert: no series is applied in {where}", "good"),
        "failed": (f"nothing was changed in {where}", "bad"),
    }[reverted.outcome]
    blocks: list[Block] = []
    if reverted.outcome != "pristine":
        blocks = [_grid(reverted.results), *_details(reverted.results)]
    blocks.append(Line(*last))
    return Report(
        "revert",
        reverted.status,
        tuple(patch_document(r) for r in reverted.results),
        {"outcome": reverted.outcome, "tree": tree, "changed": list(reverted.changed)},
        tuple(blocks),
        tuple(problems),
        reverted.notes,
    )


def _grid(results: tuple[PatchResult, ...]) -> Grid:
    rows = []
    for number, result in enumerate(results, 1):
        word, style = _WORDS.get(result.result, (result.result, ""))
        more = ", ".join(f"{o.file} hunk {o.hunk} {o.offset:+d}" for o in result.offsets[:3])
        if len(result.offsets) > 3:
            more += f" and {len(result.offsets) - 3} more"
        if result.failure is not None:
            more = result.failure.reason
        changed = f"+{result.added} -{result.removed}" if result.added or result.removed else ""
        rows.append(
            (
                Cell(str(number), "dim"),
                Cell(result.name),
                Cell(word, style),
                Cell(str(len(result.files)) if result.files else "", "dim"),
                Cell(changed, "dim"),
                Cell(more or _shown(result.files), style if more else "dim"),
            )
        )
    return Grid(("#", "patch", "result", "files", "lines", ""), tuple(rows), (0, 3, 4))


def _shown(files: tuple[str, ...]) -> str:
    return "" if not files else files[0] + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def _details(results: tuple[PatchResult, ...]) -> list[Line]:
    return [line for result in results if result.failure for line in detail_of(result.failure)]
