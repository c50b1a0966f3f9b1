"""Which definition encloses a line of Python, and whether a hunk that moved is still in its own.

An offset is only a fact about lines.  In Python the same few lines often stand in two classes, so a hunk may move only
inside the definition it was cut in.  That name comes from the lock (the pristine tree) when there is one; else from the
section heading after the second ``@@``.
"""

from __future__ import annotations

import ast
import bisect
import re
from functools import lru_cache

from patchforge.engine.syntax import Part, cut, whole

_HEADING = re.compile(rb"[ \t]*(?:class|(?:async[ \t]+)?def)[ \t]")
_TOP = re.compile(rb"[A-Za-z_$]")
_INDENT_DEF = re.compile(rb"([ \t]*)(?:class|(?:async[ \t]+)?def)[ \t]+([A-Za-z_0-9]+)")


class Scopes:
    """The definitions of one Python file; lines are 0-based indices.  Everything is computed once, on first use."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        self._parts: tuple[Part, ...] | None = None
        self._owners: dict[int, list[str]] = {}
        self._headings: tuple[list[bytes], list[bytes]] | None = None
        self._sorted: list[bytes] | None = None

    def at(self, index: int) -> str:
        """Qualified name of the innermost definition around line ``index``; ``""`` at module level."""
        if not 0 <= index < len(self._lines):
            return ""
        if self._parts is None:
            self._parts = cut(b"\n".join(self._lines))
        number = bisect.bisect_right(self._parts, index, key=lambda part: part.first) - 1
        part = self._parts[number]
        if number not in self._owners:
            size = len(self._lines) - part.first
            if part.tree is not None:
                self._owners[number] = _owners(_spans(part.tree), min(size, len(part.lines)))
            elif len(self._parts) > 1:  # cut in the wrong place, or no Python: the whole decides
                self._parts, self._owners = (whole(b"\n".join(self._lines)),), {}
                return self.at(index)
            else:
                self._owners[number] = _owners(self._by_indent(), size)
        return self._owners[number][index - part.first]

    def headings(self, index: int) -> tuple[bytes, bytes]:
        """The section headings git would print for a hunk at ``index``: with its Python rule, and with its default rule."""
        if self._headings is None:
            python, default = [b""], [b""]
            for line in self._lines:
                python.append(line.strip() if _HEADING.match(line) else python[-1])
                default.append(line.strip() if _TOP.match(line) else default[-1])
            self._headings = python, default
        at = min(index, len(self._lines))
        return self._headings[0][at], self._headings[1][at]

    def count(self, heading: bytes) -> int:
        """How many lines of the file start with ``heading``, white space aside."""
        if self._sorted is None:
            self._sorted = sorted(line.strip() for line in self._lines)
        low = bisect.bisect_left(self._sorted, heading)
        return bisect.bisect_left(self._sorted, heading + b"\xff" * 8, low) - low

    def _by_indent(self) -> list[tuple[int, int, str]]:
        """Definitions by indentation, for a file this Python cannot parse."""
        spans: list[tuple[int, int, str]] = []
        open_defs: list[tuple[int, int, str]] = []
        last = -1
        for index, line in enumerate(self._lines):
            if not line.strip() or line.lstrip().startswith(b"#"):
                continue
            indent = len(line) - len(line.lstrip())
            while open_defs and open_defs[-1][0] >= indent:
                _, start, name = open_defs.pop()
                spans.append((start, last, name))
            match = _INDENT_DEF.match(line)
            if match:
                prefix = open_defs[-1][2] + "." if open_defs else ""
                open_defs.append((indent, index, prefix + match.group(2).decode()))
            last = index
        spans.extend((start, last, name) for _, start, name in open_defs)
        return spans


def _owners(spans: list[tuple[int, int, str]], size: int) -> list[str]:
    """For each of ``size`` lines the innermost definition around it."""
    owners = [""] * size
    # Outer definitions first, so that inner ones overwrite them.
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        owners[start : end + 1] = [name] * (min(end + 1, size) - start)
    return owners


@lru_cache(maxsize=8192)
def _spans(module: ast.Module) -> list[tuple[int, int, str]]:
    """First and last line, from 0, and qualified name of every definition."""
    spans: list[tuple[int, int, str]] = []
    stack: list[tuple[ast.AST, str]] = [(module, "")]
    while stack:
        node, prefix = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}" if prefix else child.name
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                spans.append((first - 1, (child.end_lineno or child.lineno) - 1, name))
                stack.append((child, name))
            elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                stack.append((child, prefix))  # a definition is a statement: expressions hold none
    return spans


def proves_same(lines: list[bytes], scopes: Scopes, hunk_at: int, line: int, recorded: int, heading: bytes) -> str:
    """Say why the section heading does not prove that ``line`` lies in the hunk's own definition; ``""`` when it does.

    ``hunk_at`` is where the hunk would start, ``line`` its first changed line there, ``recorded`` the line it was recorded
    for.  A heading proves the place when the candidate has it and either no other place in the file has, or the
    definition around the recorded line is the same one.
    """
    here = scopes.at(line)
    stays = scopes.at(min(recorded, max(len(lines) - 1, 0))) == here
    heading = heading.strip()
    if not heading:
        if stays:
            return ""
        return (
            f"nothing proves that '{here or 'the module level'}' is the definition it was cut in (no section heading)"
        )
    found = scopes.headings(hunk_at)
    if not any(candidate and candidate[: len(heading)] == heading for candidate in found):
        shown = heading.decode("utf-8", "backslashreplace")
        return f"it was cut in '{shown}', and this place is in '{here or 'the module level'}'"
    if stays or scopes.count(heading) == 1:
        return ""
    shown = heading.decode("utf-8", "backslashreplace")
    return f"'{shown}' stands more than once in the file, so it does not prove the place"
