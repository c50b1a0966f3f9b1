"""A diff cut into file sections as bytes, and sections with other paths."""

from __future__ import annotations

import re

from patchforge.diff.model import FileDiff
from patchforge.diff.names import quote
from patchforge.diff.parser import section_start

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_GIT_HEADER = (
    *(
        b"old mode ",
        b"new mode ",
        b"deleted file mode ",
        b"new file mode ",
        b"copy from ",
        b"copy to ",
        b"rename from ",
    ),
    *(b"rename to ", b"similarity index ", b"dissimilarity index ", b"index ", b"GIT binary patch", b"Binary files "),
    *(b"literal ", b"delta "),
)
_RENAMES = (b"rename from ", b"rename to ", b"copy from ", b"copy to ")


def cut(data: bytes) -> tuple[bytes, list[bytes]]:
    """The text before the first section, and each section with its hunks; what stands between and after them is left out."""
    lines = data.split(b"\n")
    parts: list[bytes] = []
    first = len(lines)
    number = 0
    while number < len(lines):
        if lines[number][:4] in (b"diff", b"--- ") and section_start(lines, number):
            end = _end(lines, number)
            parts.append(b"\n".join(lines[number:end]) + b"\n")
            first = min(first, number)
            number = end
        else:
            number += 1
    if not parts:
        return data, []
    return b"\n".join(lines[:first]) + (b"\n" if first else b""), parts


def _end(lines: list[bytes], start: int) -> int:
    """Where the section that starts at ``start`` ends: after its last hunk, or after its header when it has none."""
    number = start + 1
    while number < len(lines) and not lines[number].startswith(b"@@"):
        header = lines[number].startswith((b"--- ", b"+++ ", *_GIT_HEADER))
        if not header:
            return number
        number += 1
    while number < len(lines) and (match := _HUNK.match(lines[number])):
        old, new = (int(match[k]) if match[k] is not None else 1 for k in (1, 2))
        number += 1
        while number < len(lines) and (old > 0 or new > 0 or lines[number].startswith(b"\\")):
            mark = lines[number][:1]
            old -= mark in (b" ", b"-", b"")
            new -= mark in (b" ", b"+", b"")
            number += 1
    return number


def names_of(section: bytes) -> tuple[bytes, bytes]:
    """The two names of a section as written, for deciding whether it is wanted at all; not checked."""
    first = section.partition(b"\n")[0]
    if first.startswith(b"diff --git "):
        rest = first[len(b"diff --git ") :]
        if rest.startswith(b'"'):
            from patchforge.diff.names import BadName, unquote

            try:
                one, tail = unquote(rest)
                two = unquote(tail.strip())[0] if tail.strip().startswith(b'"') else tail.strip()
                return one, two
            except BadName:
                return rest, rest
        half = len(rest) // 2
        if rest[half : half + 1] == b" " and rest[:half].partition(b"/")[2] == rest[half + 1 :].partition(b"/")[2]:
            return rest[:half], rest[half + 1 :]
        one, _, two = rest.partition(b" b/")
        return one, b"b/" + two
    lines = section.split(b"\n")
    old = lines[0][4:].partition(b"\t")[0]
    new = lines[1][4:].partition(b"\t")[0] if len(lines) > 1 else old
    return (new if old == b"/dev/null" else old), (old if new == b"/dev/null" else new)


def renamed(section: bytes, change: FileDiff, old: str | None, new: str | None) -> bytes:
    """``section``, parsed as ``change``, with the paths ``old`` and ``new``, in git's form."""
    before = (old if old is not None else new) or ""
    after = (new if new is not None else old) or ""
    lines = section.split(b"\n")
    body = next((i for i, line in enumerate(lines) if line.startswith(b"@@")), len(lines))
    out = [b"diff --git " + _quoted("a/" + before) + b" " + _quoted("b/" + after)]
    if not change.git:
        if change.action == "create":
            out.append(b"new file mode 100644")
        elif change.action == "delete":
            out.append(b"deleted file mode 100644")
    for line in lines[1 if change.git else 0 : body]:
        if line.startswith(_RENAMES):
            key = next(k for k in _RENAMES if line.startswith(k))
            out.append(key + _quoted(before if key.endswith(b"from ") else after))
        elif line.startswith(b"--- "):
            out.append(b"--- /dev/null" if old is None else b"--- " + _quoted("a/" + before))
        elif line.startswith(b"+++ "):
            out.append(b"+++ /dev/null" if new is None else b"+++ " + _quoted("b/" + after))
        elif line and change.git:
            out.append(line)
    return b"\n".join(out + lines[body:])


def _quoted(name: str) -> bytes:
    return quote(name.encode())
