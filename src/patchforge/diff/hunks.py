"""Reading one hunk: strict counts, exact bytes, line numbers in every error."""

from __future__ import annotations

import re

from patchforge.diff.model import Hunk
from patchforge.errors import MalformedPatch

HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: ?(.*))?\Z", re.DOTALL)
_LOOSE = re.compile(rb"@@ *-")


def starts_hunk(line: bytes) -> bool:
    """True for a line that is, or was meant to be, a hunk header."""
    return _LOOSE.match(line) is not None


def _header(line: bytes, number: int, patch: str) -> tuple[int, int, int, int, bytes]:
    match = HUNK.match(line)
    if match is None:
        shown = line.decode("utf-8", "backslashreplace")[:80]
        raise MalformedPatch(
            f"malformed hunk header {shown!r}",
            reason="malformed",
            file=patch,
            line=number,
            hint="the form is '@@ -LINE,COUNT +LINE,COUNT @@', with single spaces and plain numbers",
        )
    a, b, c, d, section = match.groups()
    old_start, old_len = int(a), 1 if b is None else int(b)
    new_start, new_len = int(c), 1 if d is None else int(d)
    for start, length, sign in ((old_start, old_len, "-"), (new_start, new_len, "+")):
        if start == 0 and length != 0:
            raise MalformedPatch(
                f"hunk header says '{sign}0,{length}': lines count from 1",
                reason="malformed",
                file=patch,
                line=number,
            )
    return old_start, old_len, new_start, new_len, section or b""


def read_hunk(lines: list[bytes], at: int, patch: str, unterminated: bool) -> tuple[Hunk, int]:
    """Read the hunk whose header is ``lines[at]``; return it and the index of the line after it.

    ``unterminated`` says that the last line of the file has no newline.  Raises :class:`MalformedPatch` when the
    declared counts are not those of the body.
    """
    old_start, old_len, new_start, new_len, section = _header(lines[at], at + 1, patch)
    body: list[tuple[bytes, bytes]] = []
    old: list[bytes] = []
    new: list[bytes] = []
    old_eof = new_eof = False
    blanks: list[int] = []
    index, total = at + 1, len(lines)
    while len(old) < old_len or len(new) < new_len:
        if index >= total:
            raise _short(patch, index, at, old_len - len(old), new_len - len(new))
        line = lines[index]
        op, text = line[:1], line[1:]
        if op == b"\\":
            old_eof, new_eof = _marker(body, old_eof, new_eof, patch, index)
            index += 1
            continue
        if op == b"":
            blanks.append(index + 1)
            op = b" "
        elif op not in (b" ", b"+", b"-"):
            raise _short(patch, index, at, old_len - len(old), new_len - len(new))
        if op != b"+":
            if old_eof or len(old) == old_len:
                raise _wrong(patch, index, at, "old", old_eof)
            old.append(text)
        if op != b"-":
            if new_eof or len(new) == new_len:
                raise _wrong(patch, index, at, "new", new_eof)
            new.append(text)
        body.append((op, text))
        index += 1
    if index < total and lines[index][:1] == b"\\":
        old_eof, new_eof = _marker(body, old_eof, new_eof, patch, index)
        index += 1
    elif index == total and unterminated:
        raise MalformedPatch(
            "the patch ends in the middle of a line (no newline after it)",
            reason="malformed",
            file=patch,
            line=index,
            hint="it may be cut off; a last line without newline is marked '\\ No newline at end of file'",
        )
    if all(op == b" " for op, _ in body):
        raise MalformedPatch("the hunk changes nothing", reason="malformed", file=patch, line=at + 1)
    if (old_eof and old and not old[-1]) or (new_eof and new and not new[-1]):
        raise MalformedPatch("an empty line cannot lack its newline", reason="malformed", file=patch, line=index)
    if old == new and old_eof == new_eof:
        raise MalformedPatch("the hunk changes nothing", reason="malformed", file=patch, line=at + 1)
    leading = next(i for i, (op, _) in enumerate(body) if op != b" ")
    trailing = next(i for i, (op, _) in enumerate(reversed(body)) if op != b" ")
    hunk = Hunk(
        line=at + 1,
        old_start=old_start,
        old_len=old_len,
        new_start=new_start,
        new_len=new_len,
        section=section,
        body=tuple(body),
        old=old,
        new=new,
        old_eof=old_eof,
        new_eof=new_eof,
        leading=leading,
        trailing=trailing,
        stripped_blanks=tuple(blanks),
    )
    return hunk, index


def _marker(body: list[tuple[bytes, bytes]], old_eof: bool, new_eof: bool, patch: str, index: int) -> tuple[bool, bool]:
    """Apply a ``\\ No newline`` line to the side or sides of the line before it."""
    if not body:
        raise MalformedPatch(
            "'\\ No newline' before any line of the hunk", reason="malformed", file=patch, line=index + 1
        )
    op = body[-1][0]
    if (op != b"+" and old_eof) or (op != b"-" and new_eof):
        raise MalformedPatch("'\\ No newline' twice", reason="malformed", file=patch, line=index + 1)
    return old_eof or op != b"+", new_eof or op != b"-"


def _short(patch: str, index: int, at: int, old: int, new: int) -> MalformedPatch:
    return MalformedPatch(
        f"the hunk of line {at + 1} ends here, but its header promises {old} more old and {new} more new lines",
        reason="malformed",
        file=patch,
        line=index + 1,
        hint="recount the hunk header: the counts were edited by hand, or lines are missing",
    )


def _wrong(patch: str, index: int, at: int, side: str, eof: bool) -> MalformedPatch:
    if eof:
        return MalformedPatch(
            f"a line follows '\\ No newline at end of file' on the {side} side",
            reason="malformed",
            file=patch,
            line=index + 1,
        )
    return MalformedPatch(
        f"the hunk of line {at + 1} has more {side} lines than its header declares",
        reason="malformed",
        file=patch,
        line=index + 1,
        hint="recount the hunk header: the counts were edited by hand",
    )
