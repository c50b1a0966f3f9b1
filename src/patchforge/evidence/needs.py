"""The reverse question, from trees: what a patch uses that the pin has and the release no longer does."""

from __future__ import annotations

import keyword
import re

from patchforge.diff import FileDiff
from patchforge.engine.model import Reader, Step
from patchforge.evidence.definitions import NotPythonError, definitions

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
    wanted = {name for name in used if not keyword.iskeyword(name.decode())}
    # Almost always nothing is left here, and nothing has to be parsed.
    wanted &= set(_NAME.findall(step.before.data))
    wanted -= set(_NAME.findall(new.data))
    imported = {name for line in _IMPORTED.findall(step.before.data) for name in _NAME.findall(line)}
    lost = sorted(n for n in wanted if n in imported or _defines(step.before.data, n))
    return [f"{step.path}: {name.decode()}" for name in lost]


def _defines(data: bytes, name: bytes) -> bool:
    try:
        return bool(definitions(data).called(name))
    except NotPythonError:
        return False
