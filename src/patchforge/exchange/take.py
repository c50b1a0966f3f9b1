"""Taking in a patch made elsewhere: paths relative to the package, headers pre-filled, nothing guessed."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from patchforge.diff import parse_patch
from patchforge.errors import InputError
from patchforge.exchange.mail import Letter, letters
from patchforge.exchange.sections import cut, names_of, renamed
from patchforge.headers import parse_header
from patchforge.series.names import check_name
from patchforge.series.pin import Pin

_PULL = re.compile(r"https?://[^/]+/(?P<owner>[^/]+)/(?P<project>[^/]+)/(?:pull|pulls|merge_requests)/(?P<number>\d+)")
_NUMBER = re.compile(r"\(#(\d+)\)\s*$")
_BINARY = re.compile(rb"^Binary files (\S+) and (\S+) differ$", re.MULTILINE)
_TRAILER = re.compile(
    r"^(Signed-off-by|Co-authored-by|Reviewed-by|Acked-by|Change-Id|Cc): .*$", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Taken:
    """One patch taken in: its name, its bytes, the files that were left out, and the headers that are still empty."""

    name: str
    data: bytes
    left_out: tuple[str, ...]
    missing: tuple[str, ...]


def take(data: bytes, source: str, pin: Pin, name: str | None, prefix: str | None) -> list[Taken]:
    """The patches in ``data``, which came from ``source`` (a URL, or a file's name).

    ``prefix`` is the package's directory in the upstream repository, by default the pin's root; a diff already relative to
    the package is taken as it is.  Raises :class:`InputError` when nothing of it touches the package.
    """
    found = letters(data)
    digest = hashlib.sha256(data).hexdigest()
    taken = [_one(letter, source, digest, pin, prefix if prefix is not None else pin.root) for letter in found]
    kept = [t for t in taken if t is not None]
    if not kept:
        _, sections = cut(data)
        if not sections:
            raise InputError("there is no unified diff in it", reason="empty", file=source)
        raise InputError(
            f"none of its {len(sections)} files is in {pin.root}/",
            reason="path",
            file=source,
            hint="--prefix names another directory",
        )
    if name is not None:
        name = check_name(name.removesuffix(".patch"))
    out: list[Taken] = []
    for number, item in enumerate(kept, 1):
        wanted = name if name is not None and len(kept) == 1 else f"{name}-{number}" if name is not None else item.name
        while any(wanted == other.name for other in out):
            wanted += "-2"
        out.append(Taken(wanted, item.data, item.left_out, item.missing))
    return out


def _one(letter: Letter, source: str, digest: str, pin: Pin, prefix: str) -> Taken | None:
    _, sections = cut(letter.body)
    lead = f"{prefix}/".encode() if prefix else b""
    inside = [s for s in sections if any(_plain(n).startswith(lead) for n in names_of(s))]
    relative = not inside  # perhaps the diff was made inside the package
    chosen, left_out = [], []
    for section in sections:
        if section in inside:
            chosen.append(section)
        else:
            left_out.append(_plain(names_of(section)[1]).decode("utf-8", "replace"))
    for pair in _BINARY.findall(letter.body):  # as GNU diff says it, outside any section
        paths = {_plain(name) for name in pair}
        if any(path.startswith(lead) for path in paths):
            raise InputError(
                f"{paths.pop().decode('utf-8', 'replace')} is binary: text only", reason="binary", file=source
            )
        left_out.append(paths.pop().decode("utf-8", "replace"))
    if relative:
        return None
    parts = []
    for section in chosen:
        (change,) = parse_patch(section, source).files
        old, new = (_inside(path, prefix, source, change.line) for path in (change.old_path, change.new_path))
        parts.append(renamed(section, change, old, new).rstrip(b"\n") + b"\n")
    text, missing = _text(letter, source, digest, pin)
    return Taken(_name(letter, source), text.encode() + b"".join(parts), tuple(dict.fromkeys(left_out)), missing)


def _plain(name: bytes) -> bytes:
    """A name without its first component (``a/``, ``b/``)."""
    return name.partition(b"/")[2]


def _inside(path: str | None, prefix: str, source: str, line: int) -> str | None:
    if path is None:
        return None
    if prefix and not path.startswith(f"{prefix}/"):
        raise InputError(
            f"{path} is outside {prefix}/, and the other name of the same change is inside",
            reason="path",
            file=source,
            line=line,
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


def _text(letter: Letter, source: str, digest: str, pin: Pin) -> tuple[str, tuple[str, ...]]:
    """The text before the diff; what cannot be known is left empty, and named."""
    if complete(letter.message):  # a patch of a series like this one, handed out by export
        return f"{letter.message}\n\n", ()
    pull = _PULL.match(source)
    number = pull["number"] if pull else (m[1] if (m := _NUMBER.search(letter.subject)) else None)
    what = _NUMBER.sub("", letter.subject).strip()
    fields = {
        "Kind": "backport" if pull or number else "",
        "What": what,
        "Upstream": pull[0] if pull else "",
        "Cut-against": f"{pin.distribution} {pin.version}",
        "Retires-when": f"carries #{number}" if number else "",
        "Imported": f"{source} sha256:{digest}",
    }
    prose = _TRAILER.sub("", letter.message).strip()
    if letter.author:
        prose = f"{prose}\n\nBy {letter.author}.".strip()
    missing = tuple(key for key, value in fields.items() if not value)
    if not prose:
        prose = "Why this patch is here."
        missing = (*missing, "the text that says why")
    lines = [f"{key}: {value}".rstrip() for key, value in fields.items()]
    return f"{prose}\n\n" + "\n".join(lines) + "\n\n", missing


def complete(message: str) -> bool:
    """True when the message ends with a header paragraph that has every required key."""
    try:
        header = parse_header(message.encode(), "mail")
    except InputError:
        return False
    return all(header.get(key) for key in ("Kind", "What", "Upstream", "Cut-against", "Retires-when"))
