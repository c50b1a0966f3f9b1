"""The dependencies of a planned series."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchforge.diff import FileDiff, Patch
from patchforge.engine.model import Plan, Step

_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{3,}")
_DEFINES = re.compile(
    rb"^\s*(?:async\s+def|def|class)\s+([A-Za-z_]\w{3,})|^\s*self\.([A-Za-z_]\w{3,})\s*(?::[^=]+)?=[^=]"
    rb"|^\s*#\s*define\s+([A-Za-z_]\w{3,})|^\s*\"([A-Z][A-Z0-9_]{3,})\"\s*:"
)
_ASSIGNS = re.compile(rb"^(\s*)([A-Za-z_]\w{3,})\s*(?::[^=]+)?=[^=]")


@dataclass(frozen=True, slots=True)
class Edge:
    """Patch ``later`` needs patch ``earlier``.  ``kind``: ``lines`` (its hunks cover lines the other put there), ``file`` (the
    other made or moved the file), ``name`` (it uses a name the other defines) or ``header`` (its header says so); ``what`` says
    which."""

    later: str
    earlier: str
    kind: str
    what: str


def edges(patches: list[Patch], plan: Plan, required: Mapping[str, Iterable[str]] | None = None) -> tuple[Edge, ...]:
    """Every true dependency of a plan without failure, in series order, each pair and kind once.

    ``required`` has what each patch's header says it requires.
    """
    found: dict[tuple[str, str, str], Edge] = {}
    owners: dict[str, Owners] = {}
    made: dict[str, int] = {}
    for number, (patch, result) in enumerate(zip(patches, plan.results, strict=True)):
        for change, step in zip(patch.files, result.steps, strict=True):
            lines = owners.pop(step.source or step.path, None) if change.action != "copy" else None
            if lines is None:
                lines = Owners([-1] * (len(step.before.lines) if step.before is not None else 1), {})
            maker = made.get(step.source or "")
            if maker is not None and maker != number:
                _note(found, Edge(patch.name, patches[maker].name, "file", step.source or step.path))
            for owner in sorted(_covered(change, step, lines) - {-1, number}):
                _note(found, Edge(patch.name, patches[owner].name, "lines", step.path))
            if change.action in ("create", "rename", "copy"):
                made[step.path] = number
            if step.after is not None:
                owners[step.path] = owners_after(step, lines, number)
    for edge in _names(patches, plan):
        _note(found, edge)
    rank = {patch.name: number for number, patch in enumerate(patches)}
    for later, names in (required or {}).items():
        for earlier in names:
            if rank.get(earlier, len(rank)) < rank[later]:
                _note(found, Edge(later, earlier, "header", "Requires"))
    return tuple(sorted(found.values(), key=lambda e: (rank[e.later], rank[e.earlier], e.kind)))


def _note(found: dict[tuple[str, str, str], Edge], edge: Edge) -> None:
    found.setdefault((edge.later, edge.earlier, edge.kind), edge)


@dataclass(frozen=True, slots=True)
class Owners:
    """Who put each line of a file there (-1: nobody of the series), and who took lines out before a line."""

    lines: list[int]
    gaps: dict[int, set[int]]


def _covered(change: FileDiff, step: Step, owners: Owners) -> set[int]:
    """The patches whose lines a section's hunks cover, context included, or whose deletions they reach across."""
    covered: set[int] = set()
    for hunk, (index, _, _) in zip(change.hunks, step.edits, strict=True):
        at = index if hunk.new_eof != hunk.old_eof else index - hunk.leading
        end = at + len(hunk.old)
        covered |= set(owners.lines[at:end])
        for place, takers in owners.gaps.items():
            if at < place < end:
                covered |= takers
    return covered


def owners_after(step: Step, owners: Owners, number: int) -> Owners:
    """The owners of a file after patch ``number`` took ``step`` in it."""
    lines: list[int] = []
    gaps: dict[int, set[int]] = {}
    at = 0
    for index, old, new in [*step.edits, (len(owners.lines), [], [])]:
        for place, takers in owners.gaps.items():
            if at <= place < index or (place == index and not old):
                gaps.setdefault(place - at + len(lines), set()).update(takers)
        lines += owners.lines[at:index] + [number] * len(new)
        at = index + len(old)
        inside = {taker for place, takers in owners.gaps.items() if index <= place < at for taker in takers}
        if old and not new:
            gaps.setdefault(len(lines), set()).update(inside | {number})
    return Owners(lines, gaps)


def _names(patches: list[Patch], plan: Plan) -> list[Edge]:
    """Names that one patch's added lines define and a later one's use, and that the touched pristine files do not have.

    What is assigned inside a definition is known in its own file alone; what is assigned beside them, to files that speak of
    that module too.
    """
    known: set[bytes] = set()
    for state in plan.before.values():
        if state is not None:
            known.update(_WORD.findall(state.data))
    defined: dict[bytes, int] = {}
    assigned: dict[bytes, list[tuple[int, str, bool]]] = {}
    found = []
    for number, (patch, result) in enumerate(zip(patches, plan.results, strict=True)):
        own: set[bytes] = set()
        new: dict[bytes, tuple[int, str, bool]] = {}
        used: dict[bytes, list[Step]] = {}
        for change, step in zip(patch.files, result.steps, strict=True):
            for text in (text for hunk in change.hunks for op, text in hunk.body if op == b"+"):
                match, assigns = _DEFINES.match(text), _ASSIGNS.match(text)
                if match is not None:
                    own.add(next(group for group in match.groups() if group is not None))
                elif assigns is not None:
                    new.setdefault(assigns[2], (number, step.path, not assigns[1]))
                for word in _WORD.findall(text):
                    used.setdefault(word, []).append(step)
        for word, steps in sorted(used.items()):
            if word in own or word in new:
                continue
            maker = defined.get(word)
            if maker is None:
                maker = next((n for n, path, top in assigned.get(word, []) if _sees(steps, path, top)), None)
            if maker is not None:
                found.append(Edge(patch.name, patches[maker].name, "name", word.decode()))
        for word in own - known:
            defined.setdefault(word, number)
        for word in new.keys() - known:
            assigned.setdefault(word, []).append(new[word])
    return found


def _sees(steps: list[Step], path: str, top: bool) -> bool:
    """True when one of the files is ``path``, or may have what stands at its top level because it speaks of that module."""
    pure = PurePosixPath(path)
    module = (pure.parent.name if pure.stem == "__init__" else pure.stem).encode()
    speaks = re.compile(rb"\b" + re.escape(module) + rb"\b")
    return any(
        step.path == path or (top and step.after is not None and speaks.search(step.after.data) is not None)
        for step in steps
    )


def layers(names: list[str], found: tuple[Edge, ...]) -> list[list[str]]:
    """The patches in groups: those of one group need none of each other, and only patches of the groups before."""
    needs: dict[str, set[str]] = {name: set() for name in names}
    for edge in found:
        needs[edge.later].add(edge.earlier)
    depth: dict[str, int] = {}
    for name in names:
        depth[name] = 1 + max((depth[other] for other in needs[name]), default=-1)
    return [[name for name in names if depth[name] == level] for level in sorted(set(depth.values()))]


def as_dot(names: list[str], found: tuple[Edge, ...]) -> str:
    """The graph for Graphviz: an arrow from a patch to what it needs."""
    lines = ["digraph series {", "  rankdir=BT;", "  node [shape=box];"]
    lines += [f'  "{name}";' for name in names]
    lines += [f'  "{e.later}" -> "{e.earlier}" [label="{e.kind}: {_escaped(e.what)}"];' for e in found]
    return "\n".join([*lines, "}"])


def as_mermaid(names: list[str], found: tuple[Edge, ...]) -> str:
    """The graph for Mermaid."""
    ids: Mapping[str, str] = {name: f"p{number}" for number, name in enumerate(names)}
    lines = ["graph BT", *(f'  {ids[name]}["{name}"]' for name in names)]
    lines += [f"  {ids[e.later]} -->|{e.kind}| {ids[e.earlier]}" for e in found]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
