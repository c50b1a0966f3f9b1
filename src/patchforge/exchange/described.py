"""What a patch of a bare series says of itself: a mail's header, or the fields Debian writes above a patch (DEP-3).

Anything else is plain text, and stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchforge.exchange.mail import letters

_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)\Z")
_KNOWN = {"description", "subject", "author", "from", "origin", "forwarded", "last-update", "applied-upstream", "bug"}
_END = re.compile(rb"^---[ \t]*$", re.MULTILINE)
_OF_MAIL = {"from", "subject", "date", "to", "cc", "message-id", "mime-version", "content-type", "in-reply-to"}
_OF_MAIL |= {"content-transfer-encoding", "references", "list-id", "received", "reply-to", "x-mailer", "return-path"}


@dataclass(frozen=True, slots=True)
class Described:
    """Subject, author (``NAME <ADDRESS>``), date as a mail has it, and the message; empty where the patch does not say."""

    subject: str
    author: str
    date: str
    body: bytes


def described(text: bytes) -> Described:
    """``text`` is all that stands before the diff."""
    fields, rest = _fields(text)
    found = {key.casefold() for key, _ in fields}
    if text.startswith(b"From ") or {"from", "subject"} <= found:
        return _as_mail(text, fields)
    if found & _KNOWN:
        return _as_fields(fields, rest)
    return Described("", "", "", _without_stat(text).strip(b"\n"))


def _fields(text: bytes) -> tuple[list[tuple[str, str]], bytes]:
    """The fields of the first paragraph, their values as written, and what follows it; no fields when one line is none."""
    text = re.sub(rb"\AFrom \S+ [^\n]*\n", b"", text.lstrip(b"\n"))
    first, _, rest = text.partition(b"\n\n")
    fields: list[tuple[str, str]] = []
    for line in first.decode("utf-8", "replace").rstrip("\n").split("\n"):
        if line.rstrip() == "---":
            return fields, b""
        match = _FIELD.match(line)
        if line[:1] in (" ", "\t") and fields:
            fields[-1] = (fields[-1][0], f"{fields[-1][1]}\n{line.strip()}")
        elif line.startswith("#"):
            continue
        elif match is None:
            return [], text
        else:
            fields.append((match[1], match[2].strip()))
    return fields, rest


def _as_mail(text: bytes, fields: list[tuple[str, str]]) -> Described:
    # A mail's header ends with a blank line, which a patch that has no more to say may lack.
    (letter, *_) = letters(re.sub(rb"\n---[ \t]*(\n|\Z)", rb"\n\n---\n", text, count=1) + b"\n\n")
    date = next((value for key, value in fields if key.casefold() == "date"), "")
    more = [(key, value) for key, value in fields if key.casefold() not in _OF_MAIL and not key.startswith("X-")]
    body = letter.message
    if more:
        body = "\n\n".join(part for part in (body, _lines(more)) if part)
    return Described(letter.subject, letter.author, date, body.encode())


def _as_fields(fields: list[tuple[str, str]], rest: bytes) -> Described:
    subject, prose, authors, more = "", "", [], []
    for key, value in fields:
        if key.casefold() in ("description", "subject") and not subject:
            subject, _, prose = value.partition("\n")
            prose = "\n".join("" if line == "." else line for line in prose.split("\n"))
        elif key.casefold() in ("author", "from"):
            authors += _people(value)
        else:
            more.append((key, value))
    more += [("Co-authored-by", other) for other in authors[1:]]
    free = _without_stat(rest).decode("utf-8", "replace")
    body = "\n\n".join(part.strip("\n") for part in (prose, free, _lines(more)) if part.strip())
    return Described(" ".join(subject.split()), authors[0] if authors else "", "", body.encode())


def _people(value: str) -> list[str]:
    """The people of an ``Author`` field: ``NAME <ADDRESS>``, several with commas between them."""
    return [person.strip() for person in re.split(r"(?<=>)\s*,\s*", " ".join(value.split())) if person.strip()]


def _lines(fields: list[tuple[str, str]]) -> str:
    """``fields`` as trailers; a value of several lines is folded."""
    return "\n".join(f"{key}: {value}".replace("\n", "\n ").rstrip() for key, value in fields)


def _without_stat(text: bytes) -> bytes:
    """``text`` up to the line that parts it from a diffstat."""
    end = _END.search(text)
    return text[: end.start()] if end else text
