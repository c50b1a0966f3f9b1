"""Taking in a patch made elsewhere: paths relative to the package, headers pre-filled, nothing guessed."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from patchforge.diff import parse_patch
from patchforge.errors import InputError
from patchforge.exchange.mail import Letter, letters
from patchforge.exchange.sections import cut, names_of, renamed
from patchforge.headers import parse_header
from patchforge.headers.filler import PROSE
from patchforge.series.names import check_name
from patchforge.series.pin import Pin

_PULL = re.compile(r"https?://[^/]+/(?P<owner>[^/]+)/(?P<project>[^/]+)/(?:pull|pulls|merge_requests)/(?P<number>\d+)")
_NUMBER = re.compile(r"\(#(\d+)\)\s*$")
_BINARY = re.compile(rb"^Binary files (\S+) and (\S+) differ$", re.MULTILINE)
_CREDIT = re.compile(r"^(?:[A-Za-z]+-)+by: .*\S.*(?:\n[ \t]+\S.*)*$", re.MULTILINE | re.IGNORECASE)
_NOISE = re.compile(r"^(?:Change-Id|Cc): .*$", re.MULTILINE | re.IGNORECASE)
_COMBINED = re.compile(rb"^diff --(?:cc|combined) ", re.MULTILINE)
_WHO = re.compile(r"[^<>]+ <[^<>\s]+>")


@dataclass(frozen=True, slots=True)
class Taken:
    """One patch taken in: its name, its bytes, the files that were left out, and the headers that are still empty.

    ``passed_over``: the subjects of the mails before it that hold nothing for the package.
    """

    name: str
    data: bytes
    left_out: tuple[str, ...]
    missing: tuple[str, ...]
    passed_over: tuple[str, ...] = ()


def take(data: bytes, source: str, pin: Pin, name: str | None, prefix: str | None) -> list[Taken]:
    """The patches in ``data``, which came from ``source`` (a URL, or a file's name).

    ``prefix`` is the package's directory in the upstream repository, by default the pin's root; empty when the paths are
    relative to the package already.  Raises :class:`InputError` when nothing of it touches the package.
    """
    digest = hashlib.sha256(data).hexdigest()
    below = (prefix if prefix is not None else pin.root).strip("/").removeprefix(".")
    kept: list[Taken] = []
    passed: list[str] = []
    sections = 0
    for letter in letters(data):
        parts = cut(letter.body)[1]
        sections += len(parts)
        item = _one(letter, parts, Origin(source, digest, data), pin, below)
        if item is None:
            passed.append(letter.subject or "a mail without a subject")
        else:
            kept.append(replace(item, passed_over=tuple(passed)))
            passed = []
    if not kept:
        merge = _COMBINED.search(data)
        if merge:
            raise InputError(
                "a combined diff (of a merge): unified diffs only",
                reason="malformed",
                file=source,
                line=data.count(b"\n", 0, merge.start()) + 1,
                hint="make the diff against one parent: git diff MERGE^1 MERGE",
            )
        if not sections:
            raise InputError("there is no unified diff in it", reason="empty", file=source, hint=_why_none(data))
        bare = below and re.search(rb"^(?:---|\+\+\+) " + re.escape(below).encode() + b"/", data, re.MULTILINE)
        raise InputError(
            f"none of its {sections} files is in {below}/" if below else "nothing of it is in the package",
            reason="path",
            file=source,
            hint="its names lack a/ and b/: make it with 'git -c diff.noprefix=false diff' (or format-patch)"
            if bare
            else "--prefix names another directory; --prefix . says that the paths are relative to the package already",
        )
    kept[-1] = replace(kept[-1], passed_over=(*kept[-1].passed_over, *passed))
    if name is not None:
        name = check_name(name.removesuffix(".patch"))
    out: list[Taken] = []
    for number, item in enumerate(kept, 1):
        wanted = name if name is not None and len(kept) == 1 else f"{name}-{number}" if name is not None else item.name
        while any(wanted == other.name for other in out):
            wanted += "-2"
        out.append(replace(item, name=wanted))
    return out


def _why_none(data: bytes) -> str | None:
    """What hides a diff, where it can be seen."""
    if data[:2] in (b"\x1f\x8b", b"BZ", b"PK") or data[:6] == b"\xfd7zXZ\0" or data[:4] == b"\x28\xb5\x2f\xfd":
        return "it is compressed: unpack it first"
    if b"\x1b[" in data:
        return "it has the colours of a terminal: make it with --no-color"
    if data.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return "it is a web page: the address of a pull request's patch ends with .patch or .diff"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it is UTF-16, as PowerShell writes it: save it as UTF-8"
    return None


@dataclass(frozen=True, slots=True)
class Origin:
    """What is taken in: its name, its hash, its bytes."""

    source: str
    digest: str
    data: bytes

    def line_of(self, section: bytes) -> int | None:
        """The line at which ``section`` starts; ``None`` where it travelled encoded."""
        at = self.data.find(section.partition(b"\n")[0].rstrip(b"\r"))
        return None if at < 0 else self.data.count(b"\n", 0, at) + 1


def _one(letter: Letter, sections: list[bytes], origin: Origin, pin: Pin, prefix: str) -> Taken | None:
    lead = f"{prefix}/".encode() if prefix else b""
    chosen, left_out = [], []
    for section in sections:
        if section.count(b"\n") == 1:
            raise InputError("it ends in the middle of a diff", reason="malformed", file=origin.source)
        names = [_plain(name) for name in names_of(section)]
        if any(name.startswith(lead) for name in names):
            chosen.append(section)
        else:
            left_out.append(names[1].decode("utf-8", "replace"))
    for pair in _BINARY.findall(letter.body):  # as GNU diff says it, outside any section
        paths = [_plain(name) for name in pair if name != b"/dev/null"]
        inside = [path for path in paths if path.startswith(lead)]
        if inside:
            raise InputError(
                f"{inside[0].decode('utf-8', 'replace')} is binary: text only",
                reason="binary",
                file=origin.source,
                hint="what a series carries is read and reviewed as text; ship data another way",
            )
        left_out.append(paths[-1].decode("utf-8", "replace"))
    if not chosen:
        return None
    parts = [_section(section, prefix, origin) for section in chosen]
    text, missing = _text(letter, origin, pin)
    name = _name(letter, origin.source)
    return Taken(name, text.encode() + b"".join(parts), tuple(dict.fromkeys(left_out)), missing)


def _section(section: bytes, prefix: str, origin: Origin) -> bytes:
    """``section`` with paths below ``prefix``.  Its errors name the line in what was taken in."""
    start = origin.line_of(section)
    try:
        (change,) = parse_patch(section, origin.source).files
    except InputError as error:
        error.line = error.line + start - 1 if error.line is not None and start is not None else start
        raise
    old, new = (_inside(path, prefix, origin.source, start) for path in (change.old_path, change.new_path))
    return renamed(section, change, old, new).rstrip(b"\n") + b"\n"


def _plain(name: bytes) -> bytes:
    """A name without its first component (``a/``, ``b/``)."""
    return name.partition(b"/")[2]


def _inside(path: str | None, prefix: str, source: str, line: int | None) -> str | None:
    if path is None:
        return None
    if prefix and not path.startswith(f"{prefix}/"):
        raise InputError(
            f"{path} is outside {prefix}/, and the other name of the same change is inside",
            reason="path",
            file=source,
            line=line,
            hint="make the diff without renames: git format-patch --no-renames (or git diff --no-renames)",
        )
    return path[len(prefix) + 1 :] if prefix else path


def _name(letter: Letter, source: str) -> str:
    own = re.match(r"([A-Za-z0-9][A-Za-z0-9._+-]*): ", letter.subject)
    if own is not None and complete(letter.message):
        return own[1]
    pull = _PULL.match(source)
    number = pull["number"] if pull else (m[1] if (m := _NUMBER.search(letter.subject)) else None)
    subject = _NUMBER.sub("", letter.subject) or re.sub(r"\.(patch|diff|mbox)$", "", source.rpartition("/")[2])
    words = re.sub(r"[^A-Za-z0-9]+", "-", subject).strip("-").lower()
    short = "-".join(words.split("-")[:6])[:50].strip("-")
    return f"pr{number}-{short}" if number else short or "imported"


def _text(letter: Letter, origin: Origin, pin: Pin) -> tuple[str, tuple[str, ...]]:
    """The text before the diff; what cannot be known is left empty, and named."""
    if complete(letter.message):  # a patch of a series like this one, handed out by export
        return f"{letter.message}\n\n", ()
    pull = _PULL.match(origin.source)
    number = pull["number"] if pull else (m[1] if (m := _NUMBER.search(letter.subject)) else None)
    what = _NUMBER.sub("", letter.subject).strip()
    fields = {
        "Kind": "backport" if pull or number else "",
        "What": what,
        "Upstream": pull[0] if pull else "",
        "Cut-against": f"{pin.distribution} {pin.version}",
        "Retires-when": f"carries #{number}" if number else "",
        "Imported": f"{origin.source} sha256:{origin.digest}",
    }
    credits = [" ".join(found.split()) for found in _CREDIT.findall(letter.message)]
    prose = re.sub(r"\n{3,}", "\n\n", _NOISE.sub("", _CREDIT.sub("", letter.message))).strip()
    missing = tuple(key for key, value in fields.items() if not value)
    if not prose:
        prose = PROSE
        missing = (*missing, "the text that says why")
    lines = [f"{key}: {value}".rstrip() for key, value in fields.items()]
    if _WHO.fullmatch(letter.author):
        lines.append(f"Author: {letter.author}")
    elif letter.author:
        prose = f"{prose}\n\nBy {letter.author}."
    return f"{prose}\n\n" + "\n".join([*lines, *dict.fromkeys(credits)]) + "\n\n", missing


def complete(message: str) -> bool:
    """True when the message ends with a header paragraph that has every required key."""
    try:
        header = parse_header(message.encode(), "mail")
    except InputError:
        return False
    return all(header.get(key) for key in ("Kind", "What", "Upstream", "Cut-against", "Retires-when"))
