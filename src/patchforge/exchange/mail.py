"""Mails, mailboxes and bare diffs taken apart: who says what, and the diff."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FROM = re.compile(rb"^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001$", re.MULTILINE)
_ANY_FROM = re.compile(rb"^From \S+ .*\d{4}$", re.MULTILINE)
_HEADER = re.compile(rb"(?:From|Subject|Date|Message-I[dD]|To): ")
_TAG = re.compile(r"^\s*(?:\[[^\]]*\]\s*)+")


@dataclass(frozen=True, slots=True)
class Letter:
    """One patch as it came: the subject without tags, its author, the message, and everything with the diff in it."""

    subject: str
    author: str
    message: str
    body: bytes


def letters(data: bytes) -> list[Letter]:
    """Take ``data`` apart: a mailbox gives one letter a mail, anything else one."""
    data = data.replace(b"\r\n", b"\n") if data.startswith(b"From ") and b"\r\n" in data[:200] else data
    starts = [m.start() for m in _FROM.finditer(data)]
    if not starts and data.startswith(b"From "):
        starts = [
            m.start() for m in _ANY_FROM.finditer(data) if m.start() == 0 or data[m.start() - 2 : m.start()] == b"\n\n"
        ]
    if starts:
        ends = [*starts[1:], len(data)]
        return [_mail(data[a:b].partition(b"\n")[2]) for a, b in zip(starts, ends, strict=True)]
    if _HEADER.match(data):
        return [_mail(data)]
    return [Letter("", "", "", data)]


def _mail(data: bytes) -> Letter:
    import email.header
    import email.policy
    from email.parser import BytesParser

    mail = BytesParser(policy=email.policy.compat32).parsebytes(data)
    raw = mail.get_payload(decode=True)
    if not isinstance(raw, bytes):  # several parts: the diff is in one of them
        parts = [part.get_payload(decode=True) for part in mail.walk() if not part.is_multipart()]
        raw = b"\n".join(part for part in parts if isinstance(part, bytes))
    subject = _TAG.sub("", " ".join(_decoded(mail.get("Subject", "")).split()))
    text = raw.decode("utf-8", "replace")
    message = re.split(r"^---$|^diff --git |^--- ", text, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return Letter(subject, _decoded(mail.get("From", "")), message, raw)


def _decoded(value: object) -> str:
    import email.header

    pieces = email.header.decode_header(str(value))
    return "".join(p.decode(c or "utf-8", "replace") if isinstance(p, bytes) else p for p, c in pieces)
