"""A series as a mailbox that ``git am`` takes on a checkout of the upstream repository."""

from __future__ import annotations

import re
from email.header import Header as MailHeader

from patchforge.diff import Patch, parse_patch
from patchforge.exchange.described import Described, described
from patchforge.exchange.sections import cut, renamed
from patchforge.headers import Header

_WHO = "patchforge <patchforge@invalid>"
_PLAIN = frozenset(b"\t" + bytes(range(32, 127))) - {ord("=")}
_WIDEST = 76
_DATE = "Thu, 01 Jan 2026 00:00:00 +0000"


def mailbox(patches: list[tuple[Patch, bytes, Header | None]], prefix: str) -> bytes:
    """One mail a patch: subject from ``What``, the text and the headers as the message, paths below ``prefix``."""
    out = []
    for number, (patch, data, header) in enumerate(patches, 1):
        said = _of_header(patch, header) if header is not None else described(patch.text)
        subject = f"[PATCH {number}/{len(patches)}] {said.subject or patch.name}"
        mail = [
            b"From " + b"0" * 40 + b" Mon Sep 17 00:00:00 2001",
            b"From: " + _address(said.author or _WHO),
            f"Date: {_dated(said.date)}".encode(),
            b"Subject: " + _encoded(subject),
            b"MIME-Version: 1.0",
            b"Content-Type: text/plain; charset=UTF-8",
            b"Content-Transfer-Encoding: 8bit",
            b"",
            b"",
        ]
        body = _escaped(said.body) + b"\n---\n" + _prefixed(data, prefix) + b"-- \npatchforge\n"
        if b"\r" in body:
            mail[-3] = b"Content-Transfer-Encoding: quoted-printable"
            body = _quoted(body)
        out.append(b"\n".join(mail) + body + b"\n")
    return b"".join(out)


def _of_header(patch: Patch, header: Header) -> Described:
    what = header.get("What")
    subject = f"{patch.name}: {what}" if what else patch.name
    return Described(subject, author_of(header), "", patch.text.rstrip(b"\n"))


def author_of(header: Header | None) -> str:
    """Who wrote the patch: ``Author``, else the first to have signed it off, else nobody."""
    if header is None:
        return ""
    return header.get("Author") or header.get("Signed-off-by")


def _address(who: str) -> bytes:
    """``NAME <ADDRESS>`` as a mail's header has it; a name without an address gets one that nobody has."""
    from email.utils import formataddr

    who = " ".join(who.split())
    found = re.fullmatch(r"(.*?)\s*<([^<>]*@[^<>]*)>", who)
    if found is not None:
        name, address = found.groups()
    else:
        name, address = ("", who) if "@" in who and " " not in who else (who, "patchforge@invalid")
    if not address.isascii():
        return f"{name} <{address}>".encode()
    return formataddr((name, address)).encode()


def _dated(date: str) -> str:
    """``date`` where it is one that a mail may have, else one that is always the same."""
    from email.utils import parsedate_to_datetime

    date = " ".join(date.split())
    try:
        parsedate_to_datetime(date)
    except ValueError:
        return _DATE
    return date


def _prefixed(data: bytes, prefix: str) -> bytes:
    parts = []
    for section in cut(data)[1]:
        (change,) = parse_patch(section).files
        old, new = (f"{prefix}/{p}" if prefix and p is not None else p for p in (change.old_path, change.new_path))
        parts.append(renamed(section, change, old, new).rstrip(b"\n") + b"\n")
    return b"".join(parts)


def _encoded(subject: str) -> bytes:
    if subject.isascii():
        return subject.encode()
    return MailHeader(subject, "utf-8", maxlinelen=70, header_name="Subject").encode().encode()


def _escaped(text: bytes) -> bytes:
    """Lines that a mailbox or ``git am`` would take for something else, indented by a blank: what starts a mail or a diff,
    what ends a message, and at its beginning what names another author or subject."""
    text = re.sub(rb"\A\s*(?=(?:From|Subject|Date): )", b" ", text, flags=re.IGNORECASE)
    return re.sub(rb"^(?=From |>+From |---[ \t]*$|--- \S|diff -|Index: )", b" ", text, flags=re.MULTILINE)


def _quoted(body: bytes) -> bytes:
    """``body`` as quoted-printable, which carries carriage returns through ``git am``; lines end as they did."""
    out = []
    for line in body.split(b"\n"):
        coded = b"".join(b"%c" % c if c in _PLAIN else b"=%02X" % c for c in line)
        if coded[-1:] in (b" ", b"\t"):
            coded = coded[:-1] + b"=%02X" % coded[-1]
        while len(coded) > _WIDEST:
            at = _WIDEST - 1
            at -= next(
                (back for back in (1, 2) if coded[at - back : at - back + 1] == b"="), 0
            )  # no code is torn apart
            out.append(coded[:at] + b"=")
            coded = coded[at:]
        out.append(coded)
    return b"\n".join(out)
