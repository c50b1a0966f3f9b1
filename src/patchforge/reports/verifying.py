"""The reports of ``verify`` and ``status``."""

from __future__ import annotations

from typing import Any

from patchforge.engine.verify import ALTERED, APPLIED, MISSING, PARTLY, FileStatus, PatchStatus, Verified
from patchforge.errors import Problem
from patchforge.reports.model import Block, Cell, Grid, Line, Report, plural

_STYLES = {"applied": "good", "pristine": "warn", "partly": "bad", "altered": "bad", "missing": "bad"}


def verify_report(command: str, verified: Verified, tree: str, where: str, extra: tuple[Problem, ...] = ()) -> Report:
    """The report; ``status`` only informs, ``verify`` fails unless the whole series is applied."""
    problems = [*verified.problems, *extra]
    problems += [_problem(f) for f in verified.files if f.result in (ALTERED, MISSING)]
    good = verified.result in (APPLIED, "empty") and not problems
    status = 0 if good or command == "status" else 1
    count = len(verified.patches)
    words = {
        "applied": (
            f"{plural(count, 'patch', 'patches')} applied, {plural(len(verified.files), 'file')} as locked",
            "good",
        ),
        "pristine": (f"pristine: none of {plural(count, 'patch', 'patches')} is applied", "warn"),
        "partly": ("partly applied", "bad"),
        "altered": ("altered: not what the lock says", "bad"),
        "empty": ("the series has no patches", "dim"),
    }
    text, style = words[verified.result]
    wrong = [f for f in verified.files if f.result in (ALTERED, MISSING)]
    if verified.result == "altered" and wrong and all(f.ours for f in wrong):
        text = "another series is applied"
    if verified.result == "altered" and verified.source == "patches":
        text = "altered: the series is not in it, and does not go on either"
    if verified.result == "applied" and verified.source != "lock":
        text = f"{plural(count, 'patch', 'patches')} applied (compared with the {verified.source}, not with a lock)"
    blocks: list[Block] = []
    if verified.patches:
        blocks.append(_grid(verified.patches))
    blocks.append(Line(f"{where}: {text}", style if good or verified.result != "applied" else "bad"))
    return Report(
        command,
        status,
        tuple(_patch(p) for p in verified.patches),
        {
            "result": verified.result,
            "tree": tree,
            "source": verified.source,
            "files": [_file(f) for f in verified.files],
        },
        tuple(blocks),
        tuple(problems),
        verified.notes,
    )


def _problem(file: FileStatus) -> Problem:
    hint = "reinstall the distribution, then apply again"
    if file.ours:
        hint = "'patchforge apply' brings the tree to this series"
    return Problem(file.detail or file.result, file.path, None, hint, file.result)


def _file(file: FileStatus) -> dict[str, Any]:
    out: dict[str, Any] = {"path": file.path, "result": file.result}
    if file.upto:
        out["upto"] = file.upto
    if file.detail:
        out["detail"] = file.detail
    return out


def _patch(patch: PatchStatus) -> dict[str, Any]:
    out: dict[str, Any] = {"name": patch.name, "result": patch.result}
    if patch.files:
        out["files"] = [_file(f) for f in patch.files]
    if patch.hunks:
        out["hunks"] = list(patch.hunks)
    return out


def _grid(patches: tuple[PatchStatus, ...]) -> Grid:
    rows = []
    for number, patch in enumerate(patches, 1):
        wrong = [f for f in patch.files if f.result != patch.result or f.result in (ALTERED, MISSING, PARTLY)]
        more = "; ".join(patch.hunks[:3]) if patch.hunks and patch.result != APPLIED else ""
        if not more and patch.result != APPLIED:
            more = ", ".join(f"{f.path}: {f.result}" for f in wrong[:3])
        rows.append(
            (
                Cell(str(number), "dim"),
                Cell(patch.name),
                Cell(patch.result, _STYLES.get(patch.result, "")),
                Cell(str(len(patch.files)) if patch.files else "", "dim"),
                Cell(more, "dim"),
            )
        )
    return Grid(("#", "patch", "result", "files", ""), tuple(rows), (0, 3))
