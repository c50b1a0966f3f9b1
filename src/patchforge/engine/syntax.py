"""Python source as its statements, each parsed when somebody asks for it, and once however often it comes back.

A series reads the same large files again and again: in the pin, after every patch, in every later release.  Of most of their
statements nobody asks anything, and most of the others are the same ones each time.  So a file is cut into the statements at its
top level, and a large class into those of its body, by text alone; a statement is parsed when what it says matters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cached_property, lru_cache

_GOES_ON = rb"[ \t\x0c#)\]}]|(?:else|elif|except|finally)\b"
"""How a line begins that cannot be the first one of a statement."""
_BEGINS = re.compile(rb"(?m)^(?!" + _GOES_ON + rb").")
_NAMED = re.compile(rb"[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)[ \t]*[(:\[]")
_HEAD = re.compile(rb"class[ \t]+\w+[ \t]*(?:\([^()#'\"]*\))?[ \t]*:[ \t]*\n")
_INDENT = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\n)*([ \t]+)[^ \t#]")
_WHOLE = re.compile(rb".*?coding[:=]|.*?\n.*?coding[:=]")
"""Files with an encoding of their own, or perhaps one: cut apart, their parts would lose it."""
_ODD = (b"\r", b"\0", b"\xef\xbb\xbf")
"""What means something else at the beginning of a file, or of a line: another newline, an error, a byte order mark."""
_NEWLINE = re.compile(rb"\r\n|\r|\n")
_TRIES = 100
_LARGE = 2000
"""Bytes from which a class is worth cutting."""


class Part:
    """Consecutive statements of a file, or of the body of one of its classes.

    ``first`` is the line they begin at, counted from 0; ``text`` their source; ``name`` what they define, where it is one
    function or class without decorators (``b""``: any number of things, or none).  ``owner`` is the class they are in.
    """

    def __init__(self, first: int, text: bytes, name: bytes = b"", owner: bytes = b"") -> None:
        self.first, self.text, self.name, self.owner = first, text, name, owner

    @property
    def tree(self) -> ast.Module | None:
        """What they say, with lines counted from 1 at ``first``; ``None`` when that is not Python this Python reads."""
        return _tree(self.text)

    @cached_property
    def lines(self) -> list[bytes]:
        """Their lines as Python counts them."""
        return _NEWLINE.split(self.text) if b"\r" in self.text else self.text.split(b"\n")


class Head(Part):
    """The head of a class whose body is in parts of its own; its tree is that of a class with nothing in it.

    ``last`` is the last line of the whole class, counted from 0.
    """

    def __init__(self, first: int, text: bytes, name: bytes, last: int) -> None:
        super().__init__(first, text, name)
        self.last = last

    @property
    def tree(self) -> ast.Module | None:
        """The class without its body."""
        return _tree(self.text + b" " * 99 + b"pass\n")


class Member(Part):
    """Statements of a class's body.  They are indented, so their tree has a block around them, and lines count from 2."""

    @property
    def tree(self) -> ast.Module | None:
        """One compound statement with these in its body."""
        return _inner(self.text)

    @cached_property
    def lines(self) -> list[bytes]:
        """Their lines, below the line of the block."""
        return [b"", *self.text.split(b"\n")]


def parts(data: bytes) -> tuple[Part, ...] | None:
    """The statements of a file, every one parsed; ``None`` when the file is not Python this Python reads."""
    found = cut(data)
    if all(part.tree is not None for part in found):
        return found
    one = whole(data)
    return None if one.tree is None else (one,)


def whole(data: bytes) -> Part:
    """A file in one part: what it is when a part of it cannot be parsed, being cut in the wrong place or no Python."""
    return Part(0, data)


@lru_cache(maxsize=512)
def cut(data: bytes) -> tuple[Part, ...]:
    """The statements of a file, none parsed.  A file that is not Python is cut too: its parts cannot be parsed.

    A statement goes on where the line cannot begin one, below a decorator and a backslash, and while its brackets and triple
    quotes, counted without looking at what they stand in, do not match; where they never do, parsing decides.
    """
    if any(odd in data for odd in _ODD) or _WHOLE.match(data):
        return (whole(data),)
    starts = [0, *(s for s in (m.start() for m in _BEGINS.finditer(data)) if s), len(data)]
    found = _pieces(data, starts, 0, _tree)
    return (whole(data),) if found is None else tuple(Part(line, text, name) for line, text, name in found)


@lru_cache(maxsize=512)
def fine(data: bytes) -> tuple[Part, ...]:
    """The statements of a file as :func:`cut` has them, but the large classes of one name in a head and the parts of the body."""
    found = cut(data)
    names = [part.name for part in found if part.name]
    out: list[Part] = []
    for part in found:
        large = len(part.text) > _LARGE and part.name and names.count(part.name) == 1
        out += _opened(part) if large else [part]
    return tuple(out)


def _opened(part: Part) -> list[Part]:
    head = _HEAD.match(part.text)
    indent = _INDENT.match(part.text, head.end()) if head is not None else None
    if head is None or indent is None:
        return [part]
    begins = re.compile(rb"(?m)^" + indent[1] + rb"(?!" + _GOES_ON + rb").")
    starts = [m.start() for m in begins.finditer(part.text, head.end())]
    if not starts:
        return [part]
    text = part.text[: starts[0]]
    found = _pieces(part.text, [*starts, len(part.text)], part.first + text.count(b"\n"), _inner)
    if found is None:
        return [part]
    lines = part.text.split(b"\n")
    while not lines[-1].strip() or lines[-1].lstrip()[:1] == b"#":
        lines.pop()
    out: list[Part] = [Head(part.first, text, part.name, part.first + len(lines) - 1)]
    return out + [Member(line, text, name, part.name) for line, text, name in found]


def _pieces(
    data: bytes, starts: list[int], line: int, parse: Callable[[bytes], ast.Module | None]
) -> list[tuple[int, bytes, bytes]] | None:
    """First line, text and name of each statement; ``starts`` are the offsets where one can begin, and the end."""
    found: list[tuple[int, bytes, bytes]] = []
    at = tries = 0
    while at < len(starts) - 1:
        begin, end, sums = starts[at], at, [0, 0, 0, 0, 0]
        while end < len(starts) - 1:
            end += 1
            piece = data[starts[end - 1] : starts[end]]
            sums = [a + b for a, b in zip(sums, _counts(piece), strict=True)]
            if end == len(starts) - 1:
                break
            if piece.lstrip(b" \t")[:1] == b"@" or piece.endswith(b"\\\n") or sums[3] % 2 or sums[4] % 2:
                continue
            if not any(sums[:3]) or parse(data[begin : starts[end]]) is not None:
                break
            tries += 1
            if tries > _TRIES:
                return None
        text = data[begin : starts[end]]
        named = _NAMED.match(text) if end == at + 1 else None
        found.append((line, text, named[1] if named else b""))
        line += text.count(b"\n")
        at = end
    return found


def _counts(text: bytes) -> tuple[int, int, int, int, int]:
    """How many more brackets of each kind open than close, and how many triple quotes of each kind there are."""
    count = text.count
    return (
        count(b"(") - count(b")"),
        count(b"[") - count(b"]"),
        count(b"{") - count(b"}"),
        count(b'"""'),
        count(b"'''"),
    )


@lru_cache(maxsize=8192)
def _tree(data: bytes) -> ast.Module | None:
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _inner(data: bytes) -> ast.Module | None:
    """Statements of a block, in a block."""
    tree = _tree(b"if 1:\n" + data)
    # A line with less indentation would end the block: what follows it would be something else.
    return tree if tree is not None and len(tree.body) == 1 else None
