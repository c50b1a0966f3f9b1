"""Evaluating probes on the files of a tree: read from the syntax tree, nothing is imported or run."""

from __future__ import annotations

import ast

from patchforge.engine.model import Reader
from patchforge.engine.syntax import parts
from patchforge.headers.probe import Probe


def probe_holds(probe: Probe | None, read: Reader, package: str) -> bool | None:
    """Whether ``probe`` holds on the tree behind ``read``, whose modules are imported as ``package``; ``None`` without a probe.

    An ``import`` probe is answered from the sources: the module's file must define, or import, the attribute.
    """
    if probe is None:
        return None
    if probe.kind == "source":
        state = read(probe.where)
        return source_probe(probe, state.data if state is not None else None)
    return _importable(probe, read, package)


def _importable(probe: Probe, read: Reader, package: str) -> bool:
    top, _, rest = probe.where.partition(".")
    if package and top != package:
        return False
    base = rest.replace(".", "/") if package else probe.where.replace(".", "/")
    for path in [f"{base}.py", f"{base}/__init__.py"] if base else ["__init__.py"]:
        state = read(path)
        if state is not None:
            return source_probe(probe, state.data) or _imports(state.data, probe.name)
    return False


def _imports(data: bytes, name: str) -> bool:
    """True when the module imports ``name`` at its top level from elsewhere."""
    return any(
        (alias.asname or alias.name) == name
        for part in parts(data) or ()
        for node in (part.tree.body if part.tree is not None else ())
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


def source_probe(probe: Probe, data: bytes | None) -> bool:
    """True when the file defines ``probe.name`` and, where the probe says so, its source has ``probe.text`` in it."""
    if data is None:
        return False
    lines = data.split(b"\n")
    node, first = None, 0
    for part in parts(data) or ():
        found = _find(part.tree, probe.name.split(".")) if part.tree is not None else None
        if found is not None:
            node, first = found, part.first
    if node is None:
        return False
    if not probe.text:
        return True
    begin, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or len(lines)
    return probe.text.encode("utf-8", "surrogateescape") in b"\n".join(lines[first + begin - 1 : first + end])


def _find(node: ast.AST, names: list[str]) -> ast.AST | None:
    """The last definition of the qualified name below ``node``; conditional blocks are looked into."""
    found: ast.AST | None = None
    todo = list(ast.iter_child_nodes(node))
    while todo:
        child = todo.pop(0)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if child.name == names[0]:
                found = child if len(names) == 1 else _find(child, names[1:]) or found
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            if len(names) == 1 and any(isinstance(t, ast.Name) and t.id == names[0] for t in targets):
                found = child
        elif isinstance(child, ast.If | ast.Try | ast.With):
            todo += ast.iter_child_nodes(child)
    return found
