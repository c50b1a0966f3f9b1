"""Python source as the statements at its top level, each parsed when somebody asks for it, and once however often it comes back.

A series reads the same large files again and again: in the pin, after every patch, in every later release.  Of most of their
statements nobody asks anything, and most of the others are the same ones each time.  So a file is cut at its top level by its
text alone, and a statement is parsed when what it says matters.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property, lru_cache

_BEGINS = re.compile(rb"(?m)^(?![ \t\x0c#)\]}]|(?:else|elif|except|finally)\b).")
"""Lines that can be the first one of a statement at the top level."""
_NAMED = re.compile(rb"(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)")
_WHOLE = re.compile(rb".*?coding[:=]|.*?\n.*?coding[:=]")
"""Files with an encoding of their own, or perhaps one: cut apart, their parts would lose it."""
_ODD = (b"\r", b"\0", b"\xef\xbb\xbf")
"""What means something else at the beginning of a file, or of a line: another newline, an error, a byte order mark."""
_NEWLINE = re.compile(rb"\r\n|\r|\n")
_TRIES = 100


class Part:
    """Consecutive statements of a file.

    ``first`` is the line they begin at, counted from 0; ``text`` their source; ``name`` what they define, where it is one
    function or class without decorators (``b""``: any number of things, or none).
    """

    def __init__(self, first: int, text: bytes, name: bytes = b"") -> None:
        self.first, self.text, self.name = first, text, name

    @property
    def tree(self) -> ast.Module | None:
        """What they say, with lines counted from 1 at ``first``; ``None`` when that is not Python this Python reads."""
        return _tree(self.text)

    @cached_property
    def lines(self) -> list[bytes]:
        """Their lines as Python counts them."""
        return _NEWLINE.split(self.text) if b"\r" in self.text else self.text.split(b"\n")


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
    found: list[Part] = []
    at = line = tries = 0
    while at < len(starts) - 1:
        begin, end, sums = starts[at], at, [0, 0, 0, 0, 0]
        while end < len(starts) - 1:
            end += 1
            piece = data[starts[end - 1] : starts[end]]
            sums = [a + b for a, b in zip(sums, _counts(piece), strict=True)]
            if end == len(starts) - 1:
                break
            if piece[:1] == b"@" or piece.endswith(b"\\\n") or sums[3] % 2 or sums[4] % 2:
                continue
            if not any(sums[:3]) or _tree(data[begin : starts[end]]) is not None:
                break
            tries += 1
            if tries > _TRIES:
                return (whole(data),)
        text = data[begin : starts[end]]
        named = _NAMED.match(text) if end == at + 1 else None
        found.append(Part(line, text, named[1] if named else b""))
        line += text.count(b"\n")
        at = end
    return tuple(found)


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
