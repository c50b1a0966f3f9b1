"""Mails, mailboxes, printed commits and bare diffs taken apart: who says what, and the diff."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message

_FROM = re.compile(rb"^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001$", re.MULTILINE)
_ANY_FROM = re.compile(rb"^From \S+ .*\d{4}$", re.MULTILINE)
_FIELD = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:[ \t]")
_MAIL_FIELDS = (b"from:", b"subject:", b"date:", b"message-id:", b"to:")
_TAG = re.compile(r"^\s*(?:(?:re|fwd?|aw):\s*|\[[^\]]*\]\s*)+", re.IGNORECASE)
_SCISSORS = re.compile(r"^(?=.*(?:>8|8<|>%|%<))[-\s>8<%]*(?:cut here)?[-\s>8<%]*$", re.MULTILINE | re.IGNORECASE)
_MESSAGE_END = re.compile(rb"^---[ \t]*$|^diff -|^Index: |^--- (?=[^\n]*\n\+\+\+ )", re.MULTILINE)
_SHOWN = re.compile(rb"^commit [0-9a-f]{7,64}(?: \(.*\))?$", re.MULTILINE)
_DIFF_LINE = re.compile(rb"^(?:diff --git |--- |\+\+\+ |@@ -)[^\n]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Letter:
    """One patch as it came: the subject without tags, its author, the message, and everything with the diff in it."""

    subject: str
    author: str
    message: str
    body: bytes


def letters(data: bytes) -> list[Letter]:
    """Take ``data`` apart: a mailbox gives one letter a mail, what ``git log -p`` prints one a commit, anything else one."""
    if data[:400].partition(b"\n")[0].endswith(b"\r"):  # every line came through something that ends lines with CRLF
        data = data.replace(b"\r\n", b"\n")
    starts = [m.start() for m in _FROM.finditer(data)]
    if not starts and data.startswith(b"From "):
        starts = [
            m.start() for m in _ANY_FROM.finditer(data) if m.start() == 0 or data[m.start() - 2 : m.start()] == b"\n\n"
        ]
    if starts:
        return [_mail(part.partition(b"\n")[2]) for part in _parts(data, starts)]
    if _is_mail(data):
        return [_mail(data)]
    if _SHOWN.match(data):
        return [_shown(part) for part in _parts(data, [m.start() for m in _SHOWN.finditer(data)])]
    return [Letter("", "", "", _unix(data))]


def _parts(data: bytes, starts: list[int]) -> Iterator[bytes]:
    for one, other in zip(starts, [*starts[1:], len(data)], strict=True):
        yield data[one:other]


def _is_mail(data: bytes) -> bool:
    """True when ``data`` starts with a block of header fields, one of which only a mail has."""
    head = data.partition(b"\n\n")[0].split(b"\n")
    fields = [line for line in head if line[:1] not in (b" ", b"\t")]
    if not fields or not all(_FIELD.match(line) or line.endswith(b":") for line in fields):
        return False
    return any(line.lower().startswith(_MAIL_FIELDS) for line in fields)


def _mail(data: bytes) -> Letter:
    import email.policy
    from email.parser import BytesParser

    mail = BytesParser(policy=email.policy.compat32).parsebytes(data)
    bodies = list(_bodies(mail))
    charset = bodies[0][1] if bodies else None
    raw = b"\n".join(_unix(body) for body, _ in bodies)
    subject = _TAG.sub("", " ".join(_field(mail, "Subject", charset).split()))
    author = _field(mail, "From", charset)
    end = _MESSAGE_END.search(raw)  # a diff is bytes, whatever the mail says of its text
    message = _decode(raw[: end.start()] if end else raw, charset).strip()
    cut = list(_SCISSORS.finditer(message))
    if cut:
        message = message[cut[-1].end() :].strip()
    # A mail sent for somebody else, or cut out of a longer one, names author and subject again at the start of its text.
    while found := re.match(r"(From|Subject|Date): (.*)\n*", message):
        author = found[2].strip() if found[1] == "From" else author
        subject = _TAG.sub("", found[2].strip()) if found[1] == "Subject" else subject
        message = message[found.end() :]
    return Letter(subject, _person(author), message.strip(), raw)


def _bodies(mail: Message) -> Iterator[tuple[bytes, str | None]]:
    """The text parts, decoded from what they travelled in, each with its character set; HTML only when there is no other."""
    parts = [part for part in mail.walk() if not part.is_multipart()]
    plain = [part for part in parts if part.get_content_type() != "text/html"]
    for part in plain or parts:
        body = part.get_payload(decode=True)
        if isinstance(body, bytes):
            yield body, part.get_content_charset()


def _person(author: str) -> str:
    """``NAME <ADDRESS>`` without the quotes that a mail puts round a name with a comma or a dot in it."""
    quoted = re.match(r'"((?:[^"\\]|\\.)*)"\s*(?=<)', author)
    return author if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1]) + " " + author[quoted.end() :]


def _shown(data: bytes) -> Letter:
    """A commit as ``git show`` prints it: the message is indented."""
    head, _, rest = data.partition(b"\n\n")
    end = re.search(rb"^(?:diff -|---$)", rest, re.MULTILINE)
    text = _decode(rest[: end.start()] if end else rest, None)
    lines = [line.removeprefix("    ") for line in text.split("\n")]
    subject, _, message = "\n".join(lines).strip().partition("\n")
    author = re.search(rb"^Author:[ \t]*(.*)$", head, re.MULTILINE)
    return Letter(subject, _decode(author[1], None) if author else "", message.strip(), _unix(data))


def _unix(body: bytes) -> bytes:
    """``body`` with the line ends it had before its transport: where even the lines that only a diff has end with CRLF, it
    was not the files that had them."""
    marks = _DIFF_LINE.findall(body)
    return body.replace(b"\r\n", b"\n") if marks and all(line.endswith(b"\r\n") for line in marks) else body


def _decode(raw: bytes, charset: str | None) -> str:
    """``raw`` as text: by ``charset`` when it is declared and right, else as UTF-8, else as Latin-1, which fits anything."""
    for name in (charset, "utf-8", "latin-1"):
        try:
            if name is not None:
                return raw.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    raise AssertionError("unreachable: Latin-1 decodes every byte")


def _field(mail: Message, name: str, charset: str | None) -> str:
    """A header field as text; bytes that no encoded word declares are read as the body is."""
    import email.header

    for key, value in mail.raw_items():
        if key.lower() == name.lower():
            raw = _decode(str(value).encode("ascii", "surrogateescape"), charset)
            pieces = email.header.decode_header(raw)
            return "".join(_piece(p, c) if isinstance(p, bytes) else p for p, c in pieces)
    return ""


def _piece(raw: bytes, charset: str | None) -> str:
    """One piece of a header as the library cuts it: what stands outside encoded words it hands out in an escape of its own."""
    return raw.decode("raw-unicode-escape") if charset is None else _decode(raw, charset)
