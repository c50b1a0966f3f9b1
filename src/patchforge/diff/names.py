"""File names in diffs: C quoting, timestamps, strip levels, and what a safe path is.

The quoting is the one of git and GNU diff: a name with special bytes is wrapped in double quotes and
escaped as in a C string, bytes above 0x7f in octal.
"""

from __future__ import annotations

import re
from functools import lru_cache

from patchforge.errors import MalformedPatch

_ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_STAMP = re.compile(rb"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?: ([+-])(\d\d)(\d\d))?\s*\Z")
_DRIVE = re.compile(r"[A-Za-z]:")
_IGNORABLE = dict.fromkeys([0x200C, 0x200D, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
NULL = b"/dev/null"
_DEEPEST, _LONGEST = 128, 4096


class BadName(ValueError):
    """The name cannot be decoded or is not a safe path; the text says why."""


def unquote(raw: bytes) -> tuple[bytes, bytes]:
    """Decode a C-quoted name at the start of ``raw``; return it and what follows."""
    match = _QUOTED.match(raw)
    if match is None:
        raise BadName("the quoted name has no closing quote")

    def decode(escape: re.Match[bytes]) -> bytes:
        code = escape.group(1)
        if len(code) == 3:
            return bytes([int(code, 8)])
        if code not in _ESCAPES:
            raise BadName(f"unknown escape \\{code.decode('latin-1')} in a quoted name")
        return bytes([_ESCAPES[code]])

    return _ESCAPE.sub(decode, match.group(1)), raw[match.end() :]


def quote(name: bytes) -> bytes:
    """The C-quoted form of ``name`` when it needs one, else ``name`` itself."""
    if not re.search(rb'[\x00-\x1f"\\\x7f-\xff]', name):
        return name
    named = {value: key for key, value in _ESCAPES.items()}
    out = bytearray(b'"')
    for byte in name:
        if byte in named:
            out += b"\\" + named[byte]
        elif byte < 32 or byte > 126:
            out += b"\\%03o" % byte
        else:
            out.append(byte)
    return bytes(out + b'"')


def split_header(raw: bytes) -> tuple[bytes, bytes]:
    """Split what follows ``---``/``+++`` into the name and the time stamp (empty when there is none)."""
    if raw.startswith(b'"'):
        name, rest = unquote(raw)
        return name, rest.lstrip(b"\t ")
    name, _, stamp = raw.partition(b"\t")
    return name, stamp


def is_epoch(stamp: bytes) -> bool:
    """True when ``stamp`` is the moment 0 of Unix time, with which ``diff -N`` marks an absent file."""
    match = _STAMP.match(stamp)
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(match.group(i)) for i in range(1, 7))
    days = {(1970, 1, 1): 0, (1969, 12, 31): -1}.get((year, month, day))
    if days is None:
        return False
    offset = (int(match.group(8)) * 60 + int(match.group(9))) * 60 if match.group(7) else 0
    if match.group(7) == b"-":
        offset = -offset
    return days * 86400 + (hour * 60 + minute) * 60 + second - offset == 0


def strip(name: bytes, level: int) -> bytes:
    """Remove ``level`` leading components.  An absolute name is refused at every level, and so are repeated slashes."""
    if name.startswith(b"/"):
        raise BadName("the path is absolute")
    rest = name
    for _ in range(level):
        _, slash, rest = rest.partition(b"/")
        if not slash:
            raise BadName(f"the name has fewer than {level + 1} components, so -p{level} leaves nothing")
    return rest


def safe_path(name: bytes) -> str:
    """Return ``name`` as text when it may be written inside a tree; raise :class:`BadName` when not."""
    try:
        path = name.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadName("the name is not UTF-8") from error
    if not path:
        raise BadName("the name is empty")
    if "\0" in path or any(ord(c) < 32 or ord(c) == 127 for c in path):
        raise BadName("the name has a NUL or another control character")
    if path.startswith("/"):
        raise BadName("the path is absolute")
    if "\\" in path:
        raise BadName("the path has a backslash")
    if _DRIVE.match(path):
        raise BadName("the path starts with a drive letter")
    parts = path.split("/")
    if len(parts) > _DEEPEST or len(name) > _LONGEST:
        raise BadName(f"the path has {len(parts)} components and {len(name)} bytes: too deep or too long for a tree")
    if "" in parts:
        raise BadName("the path has an empty component")
    for part in parts:
        if part in (".", ".."):
            raise BadName(f"the path has a '{part}' component")
        plain = part.translate(_IGNORABLE).rstrip(". ").split(":")[0].casefold()
        if plain in (".git", "git~1"):
            raise BadName("the path goes into .git")
        if plain.endswith(".dist-info") or plain.endswith(".egg-info"):
            raise BadName("the path goes into installation metadata (*.dist-info)")
        if plain == "__pycache__":
            raise BadName("the path goes into __pycache__")
        if plain.startswith(".patchforge") or plain.endswith(".patchforge-tmp"):
            raise BadName("the path is one of patchforge's own files")
    last = parts[-1].casefold()
    for suffix in (".orig", ".rej", ".pyc", ".so"):
        if last.endswith(suffix):
            raise BadName(f"a series never touches *{suffix} files")
    return path


@lru_cache(maxsize=4096)
def _stripped(name: bytes, level: int) -> str:
    return safe_path(strip(name, level))


def tree_path(name: bytes, level: int, line: int, patch: str) -> str:
    """Strip and check ``name``; a bad one is a :class:`MalformedPatch` with reason ``path``."""
    try:
        return _stripped(name, level)
    except BadName as error:
        shown = name.decode("utf-8", "backslashreplace")
        raise MalformedPatch(f"{shown!r}: {error}", reason="path", file=patch, line=line) from error
