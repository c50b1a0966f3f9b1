"""The text of a patch as a commit message, and back.

Subject, blank line, the text before the diff with its headers as trailers, and one more trailer that names the patch.  A text
that comes back unchanged gives the same bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchforge.errors import InputError
from patchforge.headers import parse_header

NAME = "Patch-Name"
_NAME_LINE = re.compile(rb"^Patch-Name:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_SQUASHED = re.compile(
    rb"^# (?:This is a combination of \d+ commits\.|This is the (?:1st commit message|commit message #\d+):)\n\n?",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Message:
    """A commit message taken apart: the patch it names (``None``: it names none), its subject, and the patch's text.

    ``others``: further patches it names, as the message of a squash does.
    """

    name: str | None
    subject: str
    text: bytes
    others: tuple[str, ...] = ()


def message_of(name: str, text: bytes, series_patch: bool) -> bytes:
    """The message for patch ``name`` with ``text`` before its diff; ``series_patch`` says that it has a header paragraph."""
    body = text.rstrip(b"\n")
    what = ""
    if series_patch:
        try:
            what = parse_header(text, name).get("What")
        except InputError:
            series_patch = False
    subject = f"{name}: {what}" if what else name
    trailer = f"{NAME}: {name}\n".encode()
    parts = [subject.encode() + b"\n\n"]
    if body:
        parts.append(body + (b"\n" if series_patch else b"\n\n"))
    return b"".join([*parts, trailer])


def parse_message(message: bytes) -> Message:
    """Take a commit message apart; what git writes between the messages of a squash is no part of it."""
    message = _SQUASHED.sub(b"", message)
    subject, _, rest = message.partition(b"\n")
    found = list(_NAME_LINE.finditer(rest))
    name = None
    others = tuple(match.group(1).decode("utf-8", "surrogateescape") for match in found[:-1])
    if found:
        last = found[-1]
        name = last.group(1).decode("utf-8", "surrogateescape") or None
        rest = rest[: last.start()] + rest[last.end() + 1 :]
    return Message(name, subject.decode("utf-8", "replace").strip(), rest.strip(b"\n"), others)


def cleaned(text: bytes) -> bytes:
    """``text`` as git leaves a message that it rewrites: UTF-8 (what is not is read as Latin-1), no white space at the ends of
    lines, no two blank lines together."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        text = text.decode("latin-1").encode()
    lines = [line.rstrip() for line in text.strip(b"\n").split(b"\n")]
    return b"\n".join(line for line, before in zip(lines, [b"x", *lines], strict=False) if line or before)


def file_text(text: bytes) -> bytes:
    """The text as it stands in a canonical patch file: one blank line before the diff."""
    return text.rstrip(b"\n") + b"\n\n" if text.strip() else b""


def slug(subject: str) -> str:
    """A patch name made from a commit's subject."""
    head = subject.partition(":")[0] if re.match(r"[A-Za-z0-9][A-Za-z0-9._+-]*:", subject) else subject
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", head).strip("-.").lower()[:60] or "patch"
