"""Python files by definition: each function, class and assignment as a value that ignores positions, comments and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache


class Definition:
    """One definition: its qualified name, its first and last line (from 1), its source, and what it says.

    Two with the same source say the same; working out what one says costs more, and is left until somebody asks.
    """

    def __init__(self, name: str, first: int, last: int, source: bytes = b"", nodes: Sequence[ast.AST] = ()) -> None:
        self.name, self.first, self.last, self.source = name, first, last, source
        self._nodes = nodes

    @cached_property
    def says(self) -> str:
        """Its meaning as text, one line a statement: no positions, comments or docstrings."""
        return "\n".join(_dump(node) for node in self._nodes)

    def same(self, other: Definition) -> bool:
        """True when both say the same."""
        return self.source == other.source or self.says == other.says


@lru_cache(maxsize=256)
def definitions(data: bytes) -> dict[str, Definition] | None:
    """The definitions of a file by qualified name, the last of each name; ``None`` when it cannot be parsed.

    A class says what stands in its head; what stands in it beside definitions is ``CLASS.<body>``, and what stands at module
    level beside them ``<module>``.
    """
    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: dict[str, Definition] = {}
    _collect(module, "", re.split(rb"\r\n|\r|\n", data) if b"\r" in data else data.split(b"\n"), found)
    return found


def _collect(node: ast.AST, prefix: str, lines: list[bytes], found: dict[str, Definition]) -> None:
    rest: list[ast.stmt] = []
    for number, child in enumerate(_body(node)):
        name = _name(child)
        if name is None:
            if number or not _is_docstring(child):
                rest.append(child)
            continue
        qualified = f"{prefix}.{name}" if prefix else name
        first = min([child.lineno, *(d.lineno for d in getattr(child, "decorator_list", []))])
        last = child.end_lineno or first
        if isinstance(child, ast.ClassDef):
            head = (
                b"\n".join(lines[first - 1 : child.body[0].lineno - 1]) if child.body[0].lineno > child.lineno else b""
            )
            nodes = [*child.bases, *child.keywords, *child.decorator_list]
            # A head on one line with its body has no source of its own: it is never the same as another by source.
            found[qualified] = Definition(qualified, first, last, head or f"{id(child)}".encode(), nodes)
            _collect(child, qualified, lines, found)
        else:
            found[qualified] = Definition(qualified, first, last, b"\n".join(lines[first - 1 : last]), [child])
    source = b"\n".join(b"\n".join(lines[child.lineno - 1 : child.end_lineno]) for child in rest)
    name = f"{prefix}.<body>" if prefix else "<module>"
    found[name] = Definition(prefix or "<module>", 1, 1, source, rest)


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


def _dump(node: ast.AST) -> str:
    """What a node says: no positions, no docstrings."""
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and isinstance(body, list):
            first = body[0] if body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                inner.body = body[1:] or [ast.Pass()]
    return ast.dump(node, annotate_fields=False)


def touched(old: dict[str, Definition], patched: dict[str, Definition]) -> list[str]:
    """The names whose meaning a patch changes, inner ones instead of those around them."""
    names = [name for name in {**old, **patched} if _differ(old.get(name), patched.get(name))]
    return [name for name in names if not any(other.startswith(name + ".") for other in names)]


def _differ(old: Definition | None, patched: Definition | None) -> bool:
    if old is None or patched is None:
        there = old or patched
        return there is not None and (there.says != "" or there.source != b"")
    return not old.same(patched)
