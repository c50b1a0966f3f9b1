"""A tree without metadata: nothing but the patches themselves says how much of a series stands in it."""

from __future__ import annotations

from dataclasses import dataclass

from patchforge.diff import Patch
from patchforge.engine.hunkstate import hunks_present
from patchforge.engine.model import PatchResult, Plan
from patchforge.engine.reverse import parsed, plan_forward, plan_reverse, standing, stands
from patchforge.engine.verify import ALTERED, APPLIED, PARTLY, PRISTINE, PatchStatus, Verified
from patchforge.series.project import Series
from patchforge.tree.target import Target


@dataclass(frozen=True, slots=True)
class Moved:
    """The plan from where the tree is to where it shall be, with one result for each patch that shall stand; ``off``: it takes
    patches off."""

    plan: Plan
    notes: tuple[str, ...] = ()
    off: bool = False


def bring(series: Series, wanted: int, target: Target, failed: Plan, exact: bool) -> Moved:
    """Bring the tree, on which the whole series does not go (``failed``), to where its first ``wanted`` patches stand.

    Those that stand already stay; what is missing goes on, what stands above it comes off.  When not one stands, ``failed``
    is the answer.
    """
    patches = parsed(series)
    found = standing(patches, target)
    if found is None:
        return Moved(failed)
    count, _ = found
    kept = tuple(PatchResult(p.name, "already") for p in patches[: min(count, wanted)])
    if count <= wanted:
        plan = plan_forward(patches[count:wanted], target, exact)
        return Moved(Plan((*kept, *plan.results), plan.before, plan.after))
    plan = plan_reverse(patches[wanted:count], target)
    off = ", ".join(p.name for p in patches[wanted:count])
    return Moved(
        Plan(kept, plan.before, plan.after), (f"took off what stood above {patches[wanted - 1].name}: {off}",), True
    )


def by_patches(series: Series, target: Target, notes: list[str]) -> Verified:
    """Without lock and state: turn the patches round on the tree, or look at every hunk.

    Raises :class:`InputError` for a patch that cannot be read: nothing would be known of the tree.
    """
    patches = parsed(series)
    if not patches:
        return Verified("empty", "patches", (), (), notes=tuple(notes))
    if stands(patches, target) is not None:
        return _verified(patches, [APPLIED] * len(patches), notes)
    ahead = plan_forward(patches, target)
    if ahead.failure is None:
        return _verified(patches, [PRISTINE] * len(patches), notes)
    found = standing(patches, target)
    if found is not None:
        count, _ = found
        notes.append(f"the series is applied up to {patches[count - 1].name} ({count} of {len(patches)} patches)")
        return _verified(patches, [APPLIED] * count + [PRISTINE] * (len(patches) - count), notes)
    out = []
    for patch in patches:
        hunks, some, every = hunks_present(series, target, patch.name, None)
        fits = patch.name != ahead.failure.patch
        word = APPLIED if every else PARTLY if some else PRISTINE if fits else ALTERED
        out.append(PatchStatus(patch.name, word, (), hunks))
    if all(status.result == APPLIED for status in out):
        notes.append("every hunk is in, and yet applying the series again would not give this tree: it was edited")
        out = [PatchStatus(status.name, ALTERED, (), status.hunks) for status in out]
    elif all(status.result in (PRISTINE, ALTERED) for status in out):
        notes.append(f"{ahead.failure.patch} is not in the tree and does not fit it: {ahead.failure.message}")
    words = {status.result for status in out}
    overall = ALTERED if ALTERED in words else words.pop() if len(words) == 1 else PARTLY
    return Verified(overall, "patches", tuple(out), (), notes=tuple(notes))


def _verified(patches: list[Patch], words: list[str], notes: list[str]) -> Verified:
    overall = words[0] if len(set(words)) == 1 else PARTLY
    statuses = tuple(PatchStatus(patch.name, word, ()) for patch, word in zip(patches, words, strict=True))
    return Verified(overall, "patches", statuses, (), notes=tuple(notes))
