"""Why a hunk did not land, in words a maintainer can act on."""

from __future__ import annotations

from dataclasses import replace

from patchforge.diff import FileDiff, Hunk, Patch
from patchforge.engine.explain import nearest
from patchforge.engine.model import Failure
from patchforge.engine.place import Misplaced
from patchforge.engine.search import Search, TooMuch


def explain(patch: Patch, change: FileDiff, lines: list[bytes], problem: Misplaced) -> Failure:
    """A failure that says what stands at the place, or that the change is already in."""
    hunk = change.hunks[problem.hunk]
    reason, message, hint = problem.reason, problem.message, problem.hint
    detail: tuple[str, ...] = ()
    if reason == "context":
        present = _present(lines, change)
        total = len(change.hunks)
        if len(present) == total:
            reason, hint = "already", "drop the patch, or revert the tree first"
            message = "every hunk is already in the tree"
        elif problem.hunk in present:
            reason, hint = "partly-applied", "the tree is neither pristine nor patched: reinstall or revert it"
            message = f"hunk {problem.hunk + 1} of {total} is already in the tree"
        else:
            why = _whitespace(lines, hunk)
            detail = nearest(lines, hunk)
            hint = why or hint or "the tree differs from the one the patch was cut against"
            hint += ": see the difference above" if detail and not why else ""
    return Failure(
        patch.name,
        reason,
        message,
        patch.label,
        file=change.old_path or change.path,
        hunk=problem.hunk + 1,
        hunks=len(change.hunks),
        line=hunk.line,
        hint=hint,
        detail=detail,
    )


def _present(lines: list[bytes], change: FileDiff) -> list[int]:
    """The hunks whose new side stands somewhere in the file (zero-context hunks prove nothing)."""
    search = Search(lines)
    found = []
    for number, hunk in enumerate(change.hunks):
        back = hunk.reversed()
        try:
            if back.old and not back.zero_context and search.candidates(back):
                found.append(number)
        except TooMuch:
            return []
    return found


def _whitespace(lines: list[bytes], hunk: Hunk) -> str | None:
    """Say when only line ends or the final newline keep the hunk from matching."""
    if not hunk.old:
        return None
    search = Search(lines)
    if any(line.endswith(b"\r") for line in lines) and not any(line.endswith(b"\r") for line in hunk.old):
        crlf = replace(hunk, old=[line + b"\r" for line in hunk.old])
        if search.candidates(crlf):
            return "the file has CRLF line ends and the patch LF: cut the patch against the CRLF file (nothing is converted)"
    if any(line.endswith(b"\r") for line in hunk.old):
        bare = replace(hunk, old=[line.removesuffix(b"\r") for line in hunk.old])
        if search.candidates(bare):
            return "the patch has CRLF line ends and the file LF: convert the patch (nothing is converted here)"
    loose = replace(hunk, leading=0, trailing=0, old_start=hunk.old_start + 1)
    found = search.candidates(loose)
    if found:
        edge = "start" if hunk.old_start == 1 and found[0] else "end"
        return (
            f"the lines stand at line {found[0] + 1}, but the patch was cut at the {edge} of the file and this is not it "
            "(fewer context lines on one side prove that)"
        )
    flipped = replace(hunk, old_eof=not hunk.old_eof, new_eof=False)
    if search.candidates(flipped):
        return "only the newline at the end of the file differs ('\\ No newline at end of file')"
    return None
