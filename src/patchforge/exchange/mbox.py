"""A series as a mailbox that ``git am`` takes on a checkout of the upstream repository."""

from __future__ import annotations

import re
from email.header import Header as MailHeader

from patchforge.diff import Patch, parse_patch
from patchforge.exchange.described import Described, described
from patchforge.exchange.sections import cut, renamed
from patchforge.headers import Header

_WHO = "patchforge <patchforge@invalid>"
_DATE = "Thu, 01 Jan 2026 00:00:00 +0000"


def mailbox(patches: list[tuple[Patch, bytes, Header | None]], prefix: str) -> bytes:
    """One mail a patch: subject from ``What``, the text and the headers as the message, paths below ``prefix``."""
    out = []
    for number, (patch, data, header) in enumerate(patches, 1):
        said = _of_header(patch, header) if header is not None else described(patch.text)
        subject = f"[PATCH {number}/{len(patches)}] {said.subject or patch.name}"
        mail = [
            b"From " + b"0" * 40 + b" Mon Sep 17 00:00:00 2001",
            b"From: " + _address(said.author),
            f"Date: {_dated(said.date)}".encode(),
            b"Subject: " + _encoded(subject),
            b"MIME-Version: 1.0",
            b"Content-Type: text/plain; charset=UTF-8",
            b"Content-Transfer-Encoding: 8bit",
            b"",
            _escaped(said.body),
            b"---",
            b"",
        ]
        out.append(b"\n".join(mail) + _prefixed(data, prefix) + b"-- \npatchforge\n\n")
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
    from email.utils import formataddr, parseaddr

    who = " ".join(who.split())
    if not who:
        return _WHO.encode()
    if "@" not in who:
        name = who.partition("<")[0].strip() or "patchforge"
        return formataddr((name, "patchforge@invalid")).encode()
    if who.isascii() and '"' not in who:
        return who.encode()
    return formataddr(parseaddr(who)).encode()


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
    """Lines that a mailbox or ``git am`` would take for something else, indented by a blank."""
    return re.sub(rb"^(From |---$|diff |Index: |>+From )", rb" \1", text, flags=re.MULTILINE)
