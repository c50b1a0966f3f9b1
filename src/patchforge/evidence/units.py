"""What a release has of each thing a patch changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from patchforge.diff import FileDiff, Hunk
from patchforge.engine.model import FileState, Reader, Step
from patchforge.evidence.definitions import Definition, Definitions, NotPythonError, definitions, touched
from patchforge.evidence.model import Unit
from patchforge.evidence.weight import ENOUGH, weighed, words

_TOKEN = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*|\d[\w.]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[^\sA-Za-z0-9_]")
_SAYS = re.compile(rb"[\w\"']")
_COMMENT_C = re.compile(rb"/\*.*?\*/|//[^\n]*", re.DOTALL)
_COMMENT_HASH = re.compile(rb"(?m)#[^\n]*")
_DEFINES = re.compile(rb"\n[ \t]*+(?:(?:async[ \t]++)?+(?:def|class)[ \t]++)?+([A-Za-z_]\w*+)[ \t]*+[(:=\[]")
"""A line that may define a name, with the newline before it: a literal to look for first makes it three times as fast."""
_C_LIKE = (".c", ".h", ".cc", ".cpp", ".cu", ".cuh", ".hpp", ".inl", ".js", ".ts", ".java", ".go", ".rs")


@dataclass(frozen=True, slots=True)
class Release:
    """A release to look in: a reader of its files, all its paths (for what was moved), and whether those are really all.

    ``raw`` gives the bytes of one of the paths, where that costs less than reading it as lines.
    """

    read: Reader
    paths: Callable[[], Iterable[str]]
    complete: Callable[[], bool] = lambda: True
    raw: Callable[[str], bytes] | None = None
    _known: dict[str, tuple[FileState, bytes]] = field(default_factory=dict)
    _places: dict[bytes, list[str]] = field(default_factory=dict)

    def data(self, path: str) -> bytes:
        """The content of ``path``, joined once for all the searches; empty where there is no such file."""
        state = self.read(path)
        if state is None:
            return b""
        known = self._known.get(path)
        if known is None or known[0] is not state:
            known = self._known[path] = (state, state.data)
        return known[1]

    def defining(self, name: bytes) -> list[str]:
        """The Python files with a line that defines ``name``, whatever stands around it; found for all names at once."""
        if not self._places:
            self._places[b""] = []
            raw = self.raw or self.data
            for path in self.paths():
                if path.endswith(".py"):
                    for found in set(_DEFINES.findall(b"\n" + raw(path))):
                        self._places.setdefault(found, []).append(path)
        return self._places.get(name, [])


def units_of(change: FileDiff, step: Step, release: Release) -> list[Unit]:
    """The units of one section, each with what the release has of it."""
    new = release.read(step.path)
    if new is None and step.source is not None and step.source != step.path:
        new = release.read(step.source)
    if step.path.endswith(".py") and (step.before is None or step.after is None or change.hunks):
        found = _by_definition(step, new, release)
        if found is not None:
            return found
    return [_hunk_unit(change, hunk, number, step, new) for number, hunk in enumerate(change.hunks, 1)]


def _by_definition(step: Step, new: FileState | None, release: Release) -> list[Unit] | None:
    old_defs, patched_defs, new_defs = (
        definitions(state.data if state is not None else b"") for state in (step.before, step.after, new)
    )
    try:
        names = touched(old_defs, patched_defs)
        if not names:
            return None  # comments or docstrings only: look at the lines
        units = []
        for name in sorted(names):
            unit = _definition_unit(name, step, old_defs, patched_defs, new_defs, release)
            weight, did = weighed(old_defs.get(name), patched_defs.get(name), new_defs.get(name))
            units.append(replace(unit, weight=weight, did=did if unit.state == "other" else 0))
        return units
    except NotPythonError:
        return None


def _definition_unit(
    name: str,
    step: Step,
    old_defs: Definitions,
    patched_defs: Definitions,
    new_defs: Definitions,
    release: Release,
) -> Unit:
    old, patched, new = old_defs.get(name), patched_defs.get(name), new_defs.get(name)
    at = (old or patched or new or Definition("", 1, 1)).first
    where = f"{step.source or step.path}:{at}"
    if name.endswith(("<module>", "<body>")):
        return _body_unit(name, old, patched, new, where, step.path)
    if new is not None:
        state = "other"
        if patched is not None and new.same(patched):
            state = "patched"
        elif old is not None and new.same(old):
            state = "old"
        return Unit(name, state, where, f"{step.path}:{new.first}", last=new.last)
    if patched is None:
        return Unit(name, "patched", where, step.path)  # the patch removes it, and it is gone
    moved = _elsewhere(name, patched, step.path, release)
    if moved is not None:
        return Unit(name, "patched", where, f"{moved[0]}:{moved[1]}", moved[0], moved[2])
    return Unit(name, "old" if old is None else "absent", where)


def _body_unit(
    name: str, old: Definition | None, patched: Definition | None, new: Definition | None, where: str, path: str
) -> Unit:
    """Statements beside definitions: those the patch adds must be there, those it removes must not."""
    sets = [set(d.says.split("\n")) - {""} if d is not None else set() for d in (old, patched, new)]
    added, removed = sets[1] - sets[0], sets[0] - sets[1]
    there, gone = added <= sets[2], not (removed & sets[2])
    if there and gone:
        state = "patched"
    elif not (added & sets[2]) and removed <= sets[2]:
        state = "old"
    else:
        state = "other"
    return Unit(name, state, where, path)


def _elsewhere(name: str, patched: Definition, path: str, release: Release) -> tuple[str, int, int] | None:
    """Another module that has the patched definition, word for word: its path, first and last line."""
    last = name.rpartition(".")[2].encode()
    others = [other for other in release.defining(last) if other != path]
    if not others or words(patched).total() < ENOUGH:
        return None  # nowhere, or too little to be sure that it is the same one
    rare, lines = _rare(patched.says), _longest(patched.source)
    for other in others:
        data = release.data(other)
        if not any(line in data for line in lines) or not all(word in data for word in rare):
            continue
        try:
            for definition in definitions(data).called(last):
                if definition.says == patched.says:
                    return other, definition.first, definition.last
        except NotPythonError:
            continue
    return None


def _rare(says: str) -> list[bytes]:
    """The longest names a definition uses: a file that lacks one of them cannot have it, and need not be parsed."""
    found = set(re.findall(r"'([A-Za-z_][A-Za-z0-9_]{3,})'", says))
    return [word.encode() for word in sorted(found, key=len, reverse=True)[:12]]


def _longest(source: bytes) -> list[bytes]:
    """The longest lines of a definition: what moved keeps some of them as they are."""
    return sorted({line.strip() for line in source.split(b"\n")}, key=len, reverse=True)[:5]


def tokens(data: bytes, path: str) -> list[bytes]:
    """The tokens of a file, comments and white space aside."""
    comment = (
        _COMMENT_C
        if path.endswith(_C_LIKE)
        else _COMMENT_HASH
        if path.endswith((".py", ".sh", ".toml", ".yaml"))
        else None
    )
    return _TOKEN.findall(comment.sub(b" ", data) if comment is not None else data)


def _hunk_unit(change: FileDiff, hunk: Hunk, number: int, step: Step, new: FileState | None) -> Unit:
    where = f"{step.source or step.path}:{hunk.old_start}"
    name = f"hunk {number}"
    changed = tokens(b"\n".join(text for op, text in hunk.body if op in (b"+", b"-")), step.path)
    weight = sum(_SAYS.match(token) is not None for token in changed)
    if new is None:
        return Unit(name, "patched" if step.after is None else "absent", where, weight=weight)
    stream = b"\0".join([b"", *tokens(new.data, step.path), b""])
    patched, old = (b"\0".join([b"", *tokens(b"\n".join(side), step.path), b""]) for side in (hunk.new, hunk.old))
    has_new, has_old = patched in stream and len(patched) > 1, old in stream and len(old) > 1
    state = "patched" if has_new and not has_old else "old" if has_old and not has_new else "other"
    if has_new and has_old:  # one holds the other: the longer one says more
        state = "patched" if len(patched) > len(old) else "old"
    first = _line(new, hunk) or 1
    return Unit(name, state, where, f"{step.path}:{first}", last=first + max(len(hunk.new) - 1, 0), weight=weight)


def _line(new: FileState, hunk: Hunk) -> int | None:
    wanted = next((text for op, text in hunk.body if op == b"+" and text.strip()), None)
    return new.lines.index(wanted) + 1 if wanted is not None and wanted in new.lines else None
