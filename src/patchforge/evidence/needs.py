"""The reverse question, from trees: what a patch uses that the pin has and the release no longer does."""

from __future__ import annotations

import keyword
import re

from patchforge.diff import FileDiff
from patchforge.engine.model import Reader, Step
from patchforge.evidence.definitions import definitions

_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_IMPORTED = re.compile(rb"^\s*(?:from\s+\S+\s+)?import\s+(.+)$", re.MULTILINE)


def lost_names(change: FileDiff, step: Step, read: Reader) -> list[str]:
    """Names the added lines use, which the pin's file defines or imports, and which the release's file does not mention.

    Such a patch may apply in every line and still not work.  Python files only.
    """
    if not step.path.endswith(".py") or step.before is None or step.after is None:
        return []
    new = read(step.path)
    if new is None:
        return []
    used = {
        name
        for hunk in change.hunks
        for op, text in hunk.body
        if op == b"+" and not text.lstrip().startswith(b"#")
        for name in _NAME.findall(text)
    }
    known = {name.rpartition(".")[2].encode() for name in definitions(step.before.data) or {}}
    for line in _IMPORTED.findall(step.before.data):
        known |= set(_NAME.findall(line))
    wanted = {n for n in used & known if not keyword.iskeyword(n.decode())}
    there = set(_NAME.findall(new.data)) if wanted else set()
    mine = {name.rpartition(".")[2].encode() for name in definitions(step.after.data) or {}} - known
    return [f"{step.path}: {name.decode()}" for name in sorted(wanted - there - mine)]
