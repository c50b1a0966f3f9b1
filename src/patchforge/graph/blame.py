"""Which earlier patches of the series put the lines there that stand where a hunk should have gone."""

from __future__ import annotations

from patchforge.diff import Patch
from patchforge.engine.explain import nearest_index
from patchforge.engine.model import Failure, PatchResult
from patchforge.graph.edges import Owners, owners_after


def changed_by(patches: list[Patch], results: tuple[PatchResult, ...], failure: Failure) -> tuple[str, ...]:
    """The names of the patches before the failed one that changed the region nearest to the failed hunk."""
    owners: Owners | None = None
    lines: list[bytes] | None = None
    for number, (patch, result) in enumerate(zip(patches, results, strict=False)):
        if result.failure is not None:
            break
        for change, step in zip(patch.files, result.steps, strict=True):
            if step.path != failure.file or step.after is None:
                continue
            if owners is None or change.action in ("create", "copy"):
                owners = Owners([-1] * (len(step.before.lines) if step.before is not None else 1), {})
            owners = owners_after(step, owners, number)
            lines = step.after.lines
    failed = next((p for p in patches if p.name == failure.patch), None)
    if owners is None or lines is None or failed is None or failure.hunk is None:
        return ()
    section = next((c for c in failed.files if failure.file in (c.old_path, c.new_path)), None)
    if section is None or failure.hunk > len(section.hunks):
        return ()
    hunk = section.hunks[failure.hunk - 1]
    at = nearest_index(lines, hunk)
    if at is None:
        return ()
    at = max(at, 0)
    end = at + len(hunk.old)
    found = {owner for owner in owners.lines[at:end] if owner >= 0}
    for place, takers in owners.gaps.items():
        found |= takers if at <= place <= end else set()
    return tuple(patches[owner].name for owner in sorted(found))
