"""Python files by definition: each function, class and assignment as a value that ignores positions, comments and docstrings."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition: its qualified name, its first and last line (from 1), and what it says."""

    name: str
    first: int
    last: int
    says: str


@lru_cache(maxsize=256)
def definitions(data: bytes) -> dict[str, Definition] | None:
    """The definitions of a file by qualified name, the last of each name; ``None`` when it cannot be parsed.

    A class says what stands in it beside its methods; what stands at module level beside definitions is in ``""``.
    """
    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: dict[str, Definition] = {}
    _collect(module, "", found)
    return found


def _collect(node: ast.AST, prefix: str, found: dict[str, Definition]) -> None:
    rest: list[str] = []
    for child in _body(node):
        name = _name(child)
        if name is None:
            rest.append(_dump(child))
            continue
        qualified = f"{prefix}.{name}" if prefix else name
        first = min([child.lineno, *(d.lineno for d in getattr(child, "decorator_list", []))])
        last = child.end_lineno or first
        if isinstance(child, ast.ClassDef):
            head = "|".join(
                [_dump(b) for b in child.bases]
                + [_dump(k) for k in child.keywords]
                + [_dump(d) for d in child.decorator_list]
            )
            found[qualified] = Definition(qualified, first, last, f"class {head}")
            _collect(child, qualified, found)
        else:
            found[qualified] = Definition(qualified, first, last, _dump(child))
    found[f"{prefix}.<body>" if prefix else "<module>"] = Definition(prefix or "<module>", 1, 1, "\n".join(rest))


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
    names = [name for name in {**old, **patched} if (_says(old, name) or "") != (_says(patched, name) or "")]
    return [name for name in names if not any(other.startswith(name + ".") for other in names)]


def _says(found: dict[str, Definition], name: str) -> str | None:
    definition = found.get(name)
    return definition.says if definition is not None else None
