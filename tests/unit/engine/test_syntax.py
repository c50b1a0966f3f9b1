"""Files cut at their top level mean what they mean whole: against Python's own parser."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from patchforge.engine.syntax import parts

STANDARD = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::12]
PIECES = [
    "x = 1",
    "import os",
    '"""words"""',
    "@wrap",
    "@wrap(\n    1,\n)",
    "def f():\n    return 1",
    "class A:\n\n    x = 1\n# out here\n    y = 2",
    "if x:\n    y = 1\nelif y:\n    z = 1\nelse:\n    w = 1",
    "try:\n    a()\nexcept E:\n    b()\nfinally:\n    c()",
    "for a in b:\n    c\nelse:\n    d",
    'text = """\ndef g():\nelse:\n  """',
    "text = '''\n\"\"\"\n'''",
    'odd = \'"""\'',
    "call(\n1,\n2,\n)",
    "y = 1 + \\\n2",
    "z = [\n# nothing\n]",
    "match x:\n    case 1:\n        pass",
    "elsewhere = 1; except_ = 2",
    "# coding of things",
    "",
    "\x0c",
    "async def g():\n    pass",
    "f'{x}'",
    "# type: ignore",
    "    indented = 1",
    "else:",
    ")",
    "'unclosed",
    '"""unclosed',
    "\ufeffx",
    "caf\u00e9 = 1",
]


def said(nodes: list[ast.stmt], first: int = 0) -> list[tuple[str, int, int | None]]:
    return [(ast.dump(node), node.lineno + first, node.end_lineno and node.end_lineno + first) for node in nodes]


def check(data: bytes) -> int:
    """Compare; return into how many parts it was cut."""
    found = parts(data.split(b"\n"))
    try:
        whole = ast.parse(data)
    except (SyntaxError, ValueError):
        assert found is None
        return 0
    assert found is not None
    assert said(whole.body) == [line for part in found for line in said(part.tree.body, part.first)]
    assert b"\n".join(b"\n".join(part.lines) for part in found) == data
    return len(found)


@pytest.mark.parametrize("path", STANDARD, ids=lambda p: p.name)
def test_the_standard_library(path: Path) -> None:
    assert check(path.read_bytes()) > 1


@example(["x = 1", "\ufeffx"], "\n")
@given(st.lists(st.sampled_from(PIECES), max_size=9), st.sampled_from(["\n", "\n\n", "\r\n"]))
def test_whatever_stands_together(pieces: list[str], end: str) -> None:
    check((end.join(pieces) + end).encode())


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"x", b"\0", b"\xff = 1\n", b"# coding: latin-1\nx = '\xe9'\n", b"x = (\n" * 300]
)
def test_odd_files(data: bytes) -> None:
    check(data)


def test_parts_that_come_back_are_not_parsed_again() -> None:
    one = parts(b"a = 1\ndef f():\n    pass\nb = 2\n".split(b"\n"))
    two = parts(b"a = 1\nc = 1\ndef f():\n    pass\nb = 3\n".split(b"\n"))
    assert one is not None and two is not None
    assert one[1].tree is two[2].tree
    assert (one[1].first, two[2].first) == (1, 2)
