"""What became of the lines a hunk expects, and a proposal: the patch merged three ways into the tree's own file.

The base is the file on the pin with the patches before this one, one side adds this patch, the other is the tree's file.
"""

from __future__ import annotations

import difflib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from patchforge.diff import Patch
from patchforge.engine.model import Entry, Failure, FileState, PatchResult, Reader
from patchforge.engine.plan import plan_series

_SHOWN = 24


@dataclass(frozen=True, slots=True)
class Proposal:
    """``data`` is the merged file, with ``conflicts`` conflicts marked in it; ``changed`` the difference between the pin and
    the tree around the failed hunk."""

    path: str
    data: bytes
    conflicts: int
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """What the three sides are called: ``ours`` is where the patch was to go, ``base`` where it fits."""

    ours: str = "the tree"
    base: str = "the pin"


def propose(
    fits: list[Patch],
    results: tuple[PatchResult, ...],
    failure: Failure,
    base: Reader,
    tree: Reader,
    names: Names | None = None,
) -> Proposal | None:
    """A proposal for the file of ``failure``; ``None`` when ``fits`` gives no base for one.

    ``fits``: the patches that lead from ``base`` to where the failed one, the last of them, applies.
    """
    if failure.file is None or not fits or fits[-1].name != failure.patch:
        return None
    plan = plan_series((Entry(p) for p in fits), base)
    if plan.failure is not None:
        return None
    step = next((s for s in plan.results[-1].steps if failure.file in (s.path, s.source)), None)
    ours = _now(results, failure.file, tree)
    if step is None or step.before is None or step.after is None or ours is None or ours.lines == step.before.lines:
        return None
    names = names or Names()
    merged, conflicts = _merge(ours.data, step.before.data, step.after.data, (names.ours, names.base, failure.patch))
    changed = _around(step.before.lines, ours.lines, [index for index, _, _ in step.edits], names.base)
    return Proposal(step.path, merged, conflicts, changed)


def _now(results: tuple[PatchResult, ...], path: str, tree: Reader) -> FileState | None:
    """The tree's file as the patches before the failed one left it."""
    state = tree(path)
    for result in results:
        if result.failure is not None:
            break
        for step in result.steps:
            if step.path == path:
                state = step.after
    return state


def _merge(ours: bytes, base: bytes, theirs: bytes, called: tuple[str, str, str]) -> tuple[bytes, int]:
    from git.cmd import Git

    with tempfile.TemporaryDirectory(prefix="patchforge-") as folder:
        names = ("tree", "pin", "patch")
        for name, data in zip(names, (ours, base, theirs), strict=True):
            (Path(folder) / name).write_bytes(data)
        labels = [word for label in (called[0], called[1], f"with {called[2]}") for word in ("-L", label)]
        git = Git(folder)
        status, out, _ = git.execute(
            ["git", "merge-file", "-p", "--diff3", *labels, *names],
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )
    return bytes(out), max(int(status), 0)


def _around(base: list[bytes], ours: list[bytes], places: list[int], name: str) -> tuple[str, ...]:
    """The difference between the two files near ``places``, lines of the base."""
    one, two = ([line.decode("utf-8", "backslashreplace") for line in lines] for lines in (base, ours))
    out: list[str] = []
    for group in difflib.SequenceMatcher(None, one, two, autojunk=False).get_grouped_opcodes(2):
        low, high = group[0][1], group[-1][2]
        if not any(low - 8 <= place <= high + 8 for place in places):
            continue
        out.append(f"line {low + 1} of {name}:")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += [f"  {line}" for line in one[i1:i2]]
            else:
                out += [f"- {line}" for line in one[i1:i2]] + [f"+ {line}" for line in two[j1:j2]]
    return tuple(out[:_SHOWN])
