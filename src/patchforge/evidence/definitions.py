"""Python files by definition: each function, class and assignment as a value that ignores positions, comments and docstrings.

Nothing is parsed before it is asked for: of a large file a patch changes little, and what is the same text says the same.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from patchforge.engine.syntax import Head, Member, Part, fine, whole

_MODULE = "<module>"
_BODY = b"<body>"


class Meaning:
    """What some statements say: as their source, and without positions, comments and docstrings.

    Two with the same source say the same; working out what one says costs more, and is left until somebody asks.
    """

    def __init__(self, source: bytes, nodes: Sequence[ast.AST]) -> None:
        self.source = source
        self._nodes = nodes

    @cached_property
    def says(self) -> str:
        """Their meaning as text, one line a statement."""
        try:
            return "\n".join(_said(node) for node in self._nodes)
        except RecursionError:  # an expression as deep as that is compared as it is written
            return repr(self.source)


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """One definition: its qualified name, its first and last line (from 1), and what it means."""

    name: str
    first: int
    last: int
    meanings: tuple[Meaning, ...] = ()

    @property
    def source(self) -> bytes:
        """The lines it stands on."""
        return b"\n".join(meaning.source for meaning in self.meanings)

    @property
    def says(self) -> str:
        """Its meaning as text, one line a statement: no positions, comments or docstrings."""
        return "\n".join(meaning.says for meaning in self.meanings)

    def same(self, other: Definition) -> bool:
        """True when both say the same."""
        return self.meanings == other.meanings or self.source == other.source or self.says == other.says


class NotPythonError(ValueError):
    """The file, or the part of it that was asked for, is not Python this Python reads."""


class Definitions:
    """The definitions of a file by qualified name, the last of each name.

    A class says what stands in its head; what stands in it beside definitions is ``CLASS.<body>``, and what stands at module
    level beside them ``<module>``.  Every look at them raises :class:`NotPythonError` where what it needs cannot be parsed.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.parts: tuple[Part, ...] = fine(data) if data else ()

    def get(self, name: str) -> Definition | None:
        """The definition called ``name``."""
        path = name.encode().split(b".")
        if path == [_MODULE.encode()]:
            return Definition(name, 1, 1, self._rest(b""))
        if len(path) == 2 and path[1] == _BODY and any(part.owner == path[0] for part in self.parts):
            return Definition(name, 1, 1, self._rest(path[0]))
        for number in reversed(range(len(self.parts))):
            if _may_have(self.parts[number], path):
                found = self.of(number)
                if found is None:
                    return self.get(name)
                if name in found:
                    return found[name]
        return None

    def names(self) -> list[str]:
        """Every name: all of the file is parsed."""
        found: dict[str, None] = {}
        for number, part in enumerate(self.parts):
            those = self.of(number)
            if those is None:
                return self.names()
            found |= dict.fromkeys(those)
            if isinstance(part, Head):
                found[f"{part.name.decode()}.<body>"] = None
        return [*found] if _MODULE in found else [*found, _MODULE]

    def called(self, last: bytes) -> list[Definition]:
        """Those whose qualified name ends in ``last``."""
        wanted = last.decode()
        found: list[Definition] = []
        for number, part in enumerate(self.parts):
            if last in part.text:
                those = self.of(number)
                if those is None:
                    return self.called(last)
                found += [d for name, d in those.items() if name.rpartition(".")[2] == wanted]
        return found

    def of(self, number: int) -> dict[str, Definition] | None:
        """The definitions of one of the parts; ``None`` when it could not be parsed, and all of the file is one part now.

        What stands beside definitions is there only where the part has any of it.
        """
        part = self.parts[number]
        tree = part.tree
        if tree is None:
            if len(self.parts) == 1:
                raise NotPythonError("not Python this Python reads")
            self.parts = (whole(self._data),)
            return None
        shift = part.first - isinstance(part, Member)
        found: dict[str, Definition] = {}
        for d in _definitions_of(type(part).__name__, part.text, part.owner.decode(), self._is_first(number)):
            if isinstance(part, Head):
                if "." not in d.name and d.name != _MODULE:
                    found[d.name] = Definition(d.name, part.first + d.first, part.last + 1, d.meanings)
            elif d.meanings or d.name not in (_MODULE, f"{part.owner.decode()}.<body>"):
                found[d.name] = Definition(d.name, d.first + shift, d.last + shift, d.meanings)
        return found

    def _is_first(self, number: int) -> bool:
        """True when no statement of the module, or of the class, stands before that part: it may begin with a docstring."""
        part = self.parts[number]
        if isinstance(part, Member):
            return isinstance(self.parts[number - 1], Head)
        trees = (part.tree for part in self.parts[:number])
        return all(tree is not None and not tree.body for tree in trees)

    def _rest(self, owner: bytes) -> tuple[Meaning, ...]:
        """What stands beside definitions, at module level or in the class ``owner``."""
        name = f"{owner.decode()}.<body>" if owner else _MODULE
        rest: list[Meaning] = []
        for number, part in enumerate(self.parts):
            if not part.name and part.owner == owner:
                found = self.of(number)
                if found is None:
                    there = self.get(name)
                    return there.meanings if there is not None else ()
                rest += found[name].meanings if name in found else ()
        return tuple(rest)


def _may_have(part: Part, path: list[bytes]) -> bool:
    """True when a part can hold what has that qualified name, as far as its text says."""
    if part.owner:
        return len(path) > 1 and path[0] == part.owner and (part.name or path[1]) == path[1] and path[1] in part.text
    if isinstance(part, Head):
        return path == [part.name]
    return (part.name or path[0]) == path[0] and path[0] in part.text


@lru_cache(maxsize=512)
def definitions(data: bytes) -> Definitions:
    """The definitions of a file.  Raises nothing: a file that is not Python says so when it is looked into."""
    return Definitions(data)


@lru_cache(maxsize=8192)
def _definitions_of(kind: str, text: bytes, owner: str, begins: bool) -> tuple[Definition, ...]:
    """The definitions of a part that can be parsed; ``begins``: its first statement may be a docstring of what it is in."""
    part = Head(0, text, b"", 0) if kind == "Head" else Member(0, text) if kind == "Member" else Part(0, text)
    tree = part.tree
    found: dict[str, Definition] = {}
    if tree is not None:
        _collect(tree.body[0] if kind == "Member" else tree, owner, part.lines, found, begins)
    return tuple(found.values())


def _collect(
    node: ast.AST, prefix: str, lines: Sequence[bytes], found: dict[str, Definition], begins: bool = True
) -> None:
    rest: list[Meaning] = []
    for number, child in enumerate(_body(node)):
        name = _name(child)
        if name is None:
            if number or not begins or not _is_docstring(child):
                rest.append(Meaning(b"\n".join(lines[child.lineno - 1 : child.end_lineno]), [child]))
            continue
        qualified = f"{prefix}.{name}" if prefix else name
        first = min([child.lineno, *(d.lineno for d in getattr(child, "decorator_list", []))])
        last = child.end_lineno or first
        if isinstance(child, ast.ClassDef):
            below = child.body[0].lineno > child.lineno
            # A head on one line with its body has no source of its own: it is never the same as another by source.
            head = b"\n".join(lines[first - 1 : child.body[0].lineno - 1]) if below else f"{id(child)}".encode()
            meaning = Meaning(head, [*child.bases, *child.keywords, *child.decorator_list])
            found[qualified] = Definition(qualified, first, last, (meaning,))
            _collect(child, qualified, lines, found)
        else:
            meaning = Meaning(b"\n".join(lines[first - 1 : last]), [child])
            found[qualified] = Definition(qualified, first, last, (meaning,))
    name = f"{prefix}.<body>" if prefix else _MODULE
    found[name] = Definition(name, 1, 1, tuple(rest))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _body(node: ast.AST) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for child in getattr(node, "body", []):
        out.append(child)
    return out


def _name(node: ast.stmt) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    if len(targets) == 1 and isinstance(targets[0], ast.Name):
        return targets[0].id
    return None


_SILENT = frozenset({"ctx", "kind", "type_comment"})
"""Fields that say nothing: they follow from the place, or from how a string is written."""


def _said(node: ast.AST) -> str:
    out: list[str] = []
    _say(node, out)
    return "".join(out)


def _say(node: ast.AST, out: list[str]) -> None:
    """Append what a node says: no positions, no docstrings."""
    kind = type(node)
    out.append(f"{kind.__name__}(")
    for name in node._fields:
        if name in _SILENT:
            continue
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            _say(value, out)
        elif type(value) is list:
            out.append("[")
            documented = name == "body" and kind in _DOCUMENTED and value and _is_docstring(value[0])
            for item in value[1:] if documented else value:
                if isinstance(item, ast.AST):
                    _say(item, out)
                else:
                    out.append(repr(item))
            out.append("]")
        elif value is not None:
            out.append(repr(value))
        out.append(", ")
    out.append(")")


_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def touched(old: Definitions, patched: Definitions) -> list[str]:
    """The names whose meaning a patch changes, inner ones instead of those around them."""
    names = [name for name in _candidates(old, patched) if _differ(old.get(name), patched.get(name))]
    return [name for name in names if not any(other.startswith(name + ".") for other in names)]


def _candidates(old: Definitions, patched: Definitions) -> dict[str, None]:
    """Every name that may have another meaning: those of the parts whose text is not in both, or not in the same order."""
    texts = [[(part.owner, part.text) for part in side.parts] for side in (old, patched)]
    both = set(texts[0]) & set(texts[1])
    order = [[key for key in side if key in both] for side in texts]
    names: dict[str, None] = {}
    for side, own in zip((old, patched), texts, strict=True):
        for number, key in enumerate(own):
            if key in both and order[0] == order[1]:
                continue
            found = side.of(number)
            if found is None:
                return dict.fromkeys([*old.names(), *patched.names()])
            names |= dict.fromkeys(found)
    return names


def _differ(old: Definition | None, patched: Definition | None) -> bool:
    if old is None or patched is None:
        there = old or patched
        return there is not None and (there.source != b"" or there.says != "")
    return not old.same(patched)
