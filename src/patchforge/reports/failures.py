"""A patch that does not apply, as a problem with its place and as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchforge.engine.model import Failure, PatchResult
from patchforge.errors import Problem
from patchforge.reports.model import Line


def problem_of(failure: Failure) -> Problem:
    """The problem; its place is the patch file, where a person can mend it."""
    where = ""
    if failure.file is not None:
        where = failure.file
        if failure.hunk is not None:
            where += f", hunk {failure.hunk}" + (f" of {failure.hunks}" if failure.hunks else "")
        where += ": "
    return Problem(
        f"{failure.patch}: {where}{failure.message}",
        failure.patch_file,
        failure.line,
        failure.hint,
        failure.reason,
        patch=failure.patch,
    )


def detail_of(failure: Failure) -> tuple[Line, ...]:
    """What the tree has where the hunk should go."""
    styles = {"-": "del", "+": "add"}
    return tuple(Line(f"    {text}", styles.get(text[:1], "dim")) for text in failure.detail)


def patch_document(result: PatchResult) -> Mapping[str, Any]:
    """One entry of ``patches``."""
    out: dict[str, Any] = {"name": result.name, "result": result.result}
    if result.files:
        out["files"] = list(result.files)
    if result.added or result.removed:
        out["added"], out["removed"] = result.added, result.removed
    if result.offsets:
        out["offsets"] = [{"file": o.file, "hunk": o.hunk, "offset": o.offset} for o in result.offsets]
    failure = result.failure
    if failure is not None:
        keys = ("reason", "file", "hunk", "line", "message", "hint", "patch_file")
        out.update({key: getattr(failure, key) for key in keys})
        if failure.detail:
            out["detail"] = list(failure.detail)
    return out
