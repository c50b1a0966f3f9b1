"""Files cut at their top level mean what they mean whole: against Python's own parser."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from patchforge.engine.syntax import cut, parts

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
    assert b"".join(part.text for part in cut(data)) == data
    found = parts(data)
    try:
        whole = ast.parse(data)
    except (SyntaxError, ValueError):
        assert found is None
        return 0
    assert found is not None
    trees = [(part.tree, part) for part in found]
    assert said(whole.body) == [line for tree, part in trees if tree for line in said(tree.body, part.first)]
    assert b"".join(part.text for part in found) == data
    for tree, part in trees:
        assert tree is not None
        if part.name:  # what has a name is that definition, and nothing else
            (node,) = tree.body
            assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            assert node.name.encode() == part.name
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
    one = parts(b"a = 1\ndef f():\n    pass\nb = 2\n")
    two = parts(b"a = 1\nc = 1\ndef f():\n    pass\nb = 3\n")
    assert one is not None and two is not None
    assert one[1].tree is two[2].tree
    assert (one[1].first, two[2].first) == (1, 2)


def test_nothing_is_parsed_to_cut_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchforge.engine.syntax._tree", None)
    found = cut(b"import os\n\n\ndef f(a, b):\n    return [a, {b: (a,)}]\n\n\n@f\n@f\nclass A:\n    pass\n")
    assert [(part.first, part.name) for part in found] == [(0, b""), (3, b"f"), (7, b"")]


@pytest.mark.parametrize(
    "text",
    [
        b"def f():\n    '''\nx = 1\n    '''\n",
        b"a = (\nb = 1,\n)\n",
        b"s = '\\\nx = 1'\n",
        b"t = 1 + \\\ny\n",
    ],
)
def test_what_only_looks_like_a_beginning(text: bytes) -> None:
    assert [part.text for part in cut(b"x = 1\n" + text + b"y = 2\n")] == [b"x = 1\n", text, b"y = 2\n"]
