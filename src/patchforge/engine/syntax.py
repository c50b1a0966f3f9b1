"""Python source as the statements at its top level, each parsed once however often it comes back.

A series reads the same large files again and again: in the pin, after every patch, in every later release.  Most of their
statements are the same ones each time, so a file is cut at its top level, and what was parsed before is not parsed again.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

_GOES_ON = re.compile(rb"[ \t\x0c#)\]}]|\Z|(?:else|elif|except|finally)\b")
"""How a line begins that cannot be the first one of a statement at the top level."""
_WHOLE = re.compile(rb".*?coding[:=]|.*?\n.*?coding[:=]")
"""Files with an encoding of their own, or perhaps one: cut apart, their parts would lose it."""
_ODD = (b"\r", b"\0", b"\xef\xbb\xbf")
"""What means something else at the beginning of a file, or of a line: another newline, an error, a byte order mark."""
_TRIES = 100


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Consecutive statements of a file: the lines they stand on, counted from 0, and their tree, whose lines count from 1
    at ``first``."""

    first: int
    lines: tuple[bytes, ...]
    tree: ast.Module


def parts(lines: list[bytes]) -> list[Part] | None:
    """The statements of a file, given as the pieces between its newlines; ``None`` when it is not Python this Python reads."""
    joined = b"\n".join(lines)
    if any(odd in joined for odd in _ODD) or _WHOLE.match(joined):
        tree = _tree(joined)
        return None if tree is None else [Part(0, tuple(lines), tree)]
    starts = [number for number, line in enumerate(lines) if not _GOES_ON.match(line)]
    starts = [0, *(s for s in starts if s), len(lines)]
    found: list[Part] = []
    at = tries = 0
    while at < len(starts) - 1:
        for end in range(at + 1, len(starts)):
            chunk = lines[starts[at] : starts[end]]
            text = b"\n".join(chunk)
            last = end == len(starts) - 1
            if not last and (lines[starts[end - 1]][:1] == b"@" or _open(text)):
                continue
            tree = _tree(text)
            if tree is not None:
                found.append(Part(starts[at], tuple(chunk), tree))
                at = end
                break
            tries += 1
            if last or tries > _TRIES:  # cut in the wrong places, or no Python at all: the whole decides
                tree = _tree(joined)
                return None if tree is None else [Part(0, tuple(lines), tree)]
    return found


def _open(text: bytes) -> bool:
    """True when a string in triple quotes seems to go on: not worth a try.  Taking more than needed does no harm."""
    return text.count(b'"""') % 2 == 1 or text.count(b"'''") % 2 == 1


@lru_cache(maxsize=8192)
def _tree(data: bytes) -> ast.Module | None:
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
