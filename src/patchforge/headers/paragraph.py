"""Finding and splitting the header paragraph: git trailers before the diff."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchforge.errors import InputError

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*):(?:[ \t]+(.*))?\Z")
_CREDIT = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*-by\Z")


def is_credit(key: str) -> bool:
    """True for git's trailers that name people (``Signed-off-by``, ``Co-authored-by``, …); they may be repeated."""
    return _CREDIT.match(key) is not None


@dataclass(frozen=True, slots=True)
class Field:
    """One ``Key: value``, unfolded, with the line of its key."""

    key: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Header:
    """The text before a diff, split: prose, and the fields in written order."""

    preamble: str
    fields: tuple[Field, ...]
    line: int

    def get(self, key: str, default: str = "") -> str:
        """The value of ``key``, or ``default``."""
        return next((f.value for f in self.fields if f.key == key), default)

    def line_of(self, key: str) -> int:
        """The line of ``key``, or of the paragraph when it is absent."""
        return next((f.line for f in self.fields if f.key == key), self.line)

    def names(self, key: str) -> tuple[str, ...]:
        """A comma-separated value as names without a ``.patch`` suffix."""
        parts = (part.strip() for part in self.get(key).split(","))
        return tuple(part.removesuffix(".patch") for part in parts if part)


def parse_header(text: bytes, patch: str) -> Header:
    """Split ``text`` (all that precedes the diff) into preamble and header paragraph.

    The header is the last paragraph.  Raises :class:`InputError` with the line when the text is not UTF-8, when there is
    no such paragraph, or when one of its lines is neither ``Key: value`` nor a continuation.
    """
    try:
        lines = text.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise InputError("the text before the diff is not UTF-8", reason="header", file=patch, line=line) from error
    end = len(lines)
    start, end = _paragraph(lines, end)
    if start == end:
        raise _missing(patch, 1, "the patch has no header paragraph before its diff")
    fields = _fields(lines, start, end, patch)
    above, below = _paragraph(lines, start)
    if above < below and all(is_credit(field.key) for field in fields):
        try:  # 'git commit --signoff' may have put the name in a paragraph of its own
            fields = [*_fields(lines, above, below, patch), *fields]
            start = above
        except InputError:
            pass
    return Header("\n".join(lines[:start]).strip("\n"), tuple(fields), start + 1)


def _paragraph(lines: list[str], end: int) -> tuple[int, int]:
    """The last paragraph before ``end``: where it starts and ends."""
    while end and not lines[end - 1].strip():
        end -= 1
    start = end
    while start and lines[start - 1].strip():
        start -= 1
    return start, end


def _fields(lines: list[str], start: int, end: int, patch: str) -> list[Field]:
    """The fields of the paragraph; raises :class:`InputError` at the first line that is none."""
    fields: list[Field] = []
    for number in range(start, end):
        text_line = lines[number]
        if text_line[0] in " \t":
            if not fields:
                raise _missing(patch, number + 1, "a continuation line before any 'Key: value' line")
            last = fields[-1]
            fields[-1] = Field(last.key, f"{last.value} {text_line.strip()}".strip(), last.line)
            continue
        match = _KEY.match(text_line)
        if match is None:
            if not fields:
                raise _missing(patch, number + 1, "the paragraph before the diff is not a header ('Key: value' lines)")
            raise InputError(
                f"not a 'Key: value' line: {text_line[:60]!r}",
                reason="header",
                file=patch,
                line=number + 1,
                hint="indent it if it continues the line before",
            )
        key, value = match.group(1), (match.group(2) or "").strip()
        if any(field.key.casefold() == key.casefold() for field in fields) and not is_credit(key):
            raise InputError(f"'{key}' is given twice", reason="header", file=patch, line=number + 1)
        fields.append(Field(key, value, number + 1))
    return fields


def _missing(patch: str, line: int, message: str) -> InputError:
    return InputError(
        message,
        reason="header",
        file=patch,
        line=line,
        hint="the order is: free text, a blank line, the header paragraph (Kind:, What:, …), a blank line, the diff",
    )
