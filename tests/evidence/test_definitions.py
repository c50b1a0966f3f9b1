"""What a file defines, looked at part by part, is what it defines when it is parsed as a whole."""

from __future__ import annotations

import ast
import random
import sysconfig
from pathlib import Path

import pytest

from patchforge.engine.syntax import Head, fine
from patchforge.evidence import definitions as module
from patchforge.evidence.definitions import Definition, Definitions, NotPythonError, definitions, touched

STANDARD = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
LARGE = sorted(STANDARD, key=lambda path: path.stat().st_size)[-40:]
CLASS = b"""
class A(B):
    '''About it.'''

    # Before the first.
    one = 1
    one += 2

    @wrap
    @wrap
    async def two(self):
        text = '''
    def three(self):
'''
        return text

    if one:
        def four(self): ...
    else:
        pass

    class Inner:
        x = 1
        def five(self): ...
    # After the last.


def six(): ...
# The end.
"""


def expected(data: bytes) -> dict[str, Definition]:
    """Parsed at once."""
    found: dict[str, Definition] = {}
    module._collect(ast.parse(data), "", data.split(b"\n"), found)
    return found


def same(data: bytes) -> None:
    one, all_of_it = Definitions(data), expected(data)
    assert set(one.names()) == set(all_of_it)
    for name, definition in all_of_it.items():
        found = Definitions(data).get(name)  # each asked alone, first
        assert found is not None, name
        assert found.says == definition.says, name
        if not name.endswith(">"):
            assert (found.first, found.last) == (definition.first, definition.last), name
        last = name.rpartition(".")[2].encode()
        if not last.endswith(b">"):
            assert definition.first in [d.first for d in Definitions(data).called(last)]


@pytest.mark.parametrize("path", LARGE[::4], ids=lambda path: path.name)
def test_large_files(path: Path) -> None:
    same(path.read_bytes())


@pytest.mark.parametrize("times", [0, 40])
def test_a_class_of_everything(times: int) -> None:
    data = CLASS.replace(b"    @wrap\n    @wrap", b"    padding = 'to be large'\n" * times + b"    @wrap\n    @wrap")
    assert any(isinstance(part, Head) for part in fine(data)) == bool(times * 27 > 2000 or len(data) > 2300)
    same(data)
    same(data + data.replace(b"one", b"uno"))  # two of one name: the last one counts


def changed(data: bytes, chance: random.Random) -> bytes:
    """The file with a line of its code edited, doubled or taken out, or two of them exchanged; still Python."""
    while True:
        lines = data.split(b"\n")
        at, other = sorted(chance.sample(range(len(lines)), 2))
        kind = chance.randrange(5)
        if kind == 0:
            lines[at] = lines[at].replace(b"=", b"= 1 +", 1).replace(b"return ", b"return not ", 1)
        elif kind == 1:
            lines.insert(at, lines[at])
        elif kind == 2:
            del lines[at]
        elif kind == 3:
            lines[at : at + 1] = lines[other : other + chance.randrange(1, 30)]
        else:
            del lines[at : at + chance.randrange(2, 60)]
        edited = b"\n".join(lines)
        try:
            ast.parse(edited)
        except SyntaxError:
            continue
        return edited


@pytest.mark.parametrize("path", LARGE[::3], ids=lambda path: path.name)
def test_what_a_change_touches(path: Path) -> None:
    chance = random.Random(path.name)
    old = path.read_bytes()
    whole = expected(old)
    for _ in range(6):
        new = changed(old, chance)
        after = expected(new)
        names = [
            name
            for name in {**whole, **after}
            if (whole[name].says if name in whole else None) != (after[name].says if name in after else None)
            and not (name not in whole and after[name].says == "" and after[name].source == b"")
            and not (name not in after and whole[name].says == "" and whole[name].source == b"")
        ]
        inner = {name for name in names if not any(other.startswith(name + ".") for other in names)}
        assert set(touched(definitions(old), definitions(new))) == inner


def test_the_order_of_two_of_one_name_counts() -> None:
    """The same texts, and another one comes last."""
    one, two = b"def f():\n    return 1\n\n\n", b"def f():\n    return 2\n\n\n"
    assert touched(definitions(one + two), definitions(two + one)) == ["f"]
    assert touched(definitions(one + two), definitions(one + two)) == []


def test_what_is_no_python_says_so_when_it_is_looked_into() -> None:
    data = b"def f():\n    return 1\n\n\ndef g(:\n    pass\n"
    found = definitions(data)
    whole_of_it = found.get("f")  # what can be read is
    assert whole_of_it is not None and "Return" in whole_of_it.says
    with pytest.raises(NotPythonError):
        found.get("g")
    with pytest.raises(NotPythonError):
        definitions(b"\xff\xfe").names()


def test_a_cut_in_the_wrong_place_is_noticed() -> None:
    """A bracket in a string makes the counts match where the brackets do not."""
    data = b"a = (')',\nb == 1,\n)\n\n\ndef f(): ...\n"
    assert [d.says for d in (Definitions(data).get("a"), expected(data)["a"]) if d] == [expected(data)["a"].says] * 2
    same(data)
