"""The extended header of a git diff: ``diff --git`` and the lines up to ``---`` or the first hunk."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchforge.diff.names import BadName, unquote
from patchforge.errors import MalformedPatch

_MODE = re.compile(rb"([0-7]{6})\Z")
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?\Z")
_ALLOWED = (0o100644, 0o100755)
_KEYS = (
    b"old mode ",
    b"new mode ",
    b"deleted file mode ",
    b"new file mode ",
    b"copy from ",
    b"copy to ",
    b"rename from ",
    b"rename to ",
    b"similarity index ",
    b"dissimilarity index ",
    b"index ",
)


@dataclass(slots=True)
class GitHeader:
    """What the extended header says, names still as bytes and unstripped."""

    line: int
    names: list[tuple[bytes, bytes]]
    raw: bytes
    old_mode: int | None = None
    new_mode: int | None = None
    created: bool = False
    deleted: bool = False
    rename_from: bytes | None = None
    rename_to: bytes | None = None
    copy_from: bytes | None = None
    copy_to: bytes | None = None
    index_mode: int | None = None
    old_id: str | None = None
    new_id: str | None = None

    @property
    def moved(self) -> tuple[bytes, bytes]:
        """Source and target of a rename or a copy, as written (possibly empty)."""
        renamed = self.rename_from is not None
        source, target = (self.rename_from, self.rename_to) if renamed else (self.copy_from, self.copy_to)
        assert source is not None and target is not None
        return source, target


def _splits(rest: bytes) -> list[tuple[bytes, bytes]]:
    """Every way to read the two names of a ``diff --git`` line (unquoted names may hold spaces)."""
    if rest.startswith(b'"'):
        first, tail = unquote(rest)
        if not tail.startswith(b" "):
            raise BadName("no second name")
        tail = tail[1:]
        return [(first, unquote(tail)[0] if tail.startswith(b'"') else tail)]
    if rest.endswith(b'"'):
        cut = rest.find(b' "')
        if cut < 0:
            raise BadName("the quoted name has no opening quote")
        return [(rest[:cut], unquote(rest[cut + 1 :])[0])]
    spaces = [i for i, byte in enumerate(rest[:8192]) if byte == 0x20]
    return [(rest[:i], rest[i + 1 :]) for i in spaces[:512]]


def _mode(raw: bytes, patch: str, line: int) -> int:
    match = _MODE.match(raw)
    mode = int(match.group(1), 8) if match else -1
    if mode in _ALLOWED:
        return mode
    what = {0o120000: "a symbolic link", 0o160000: "a submodule"}.get(mode, "not a regular file's mode")
    raise MalformedPatch(
        f"mode {raw.decode('latin-1')[:20]!r} is {what}; only 100644 and 100755 are accepted",
        reason="path" if mode in (0o120000, 0o160000) else "malformed",
        file=patch,
        line=line,
    )


def read_git_header(lines: list[bytes], at: int, patch: str) -> tuple[GitHeader, int]:
    """Read from ``lines[at]`` (``diff --git …``) to the first line that is not part of the extended header."""
    raw = lines[at][len(b"diff --git ") :]
    try:
        names = _splits(raw)
    except BadName as error:
        raise MalformedPatch(f"diff --git: {error}", reason="malformed", file=patch, line=at + 1) from error
    head = GitHeader(line=at + 1, names=names, raw=raw)
    index, seen = at + 1, set()
    while index < len(lines):
        line = lines[index]
        key = next((k for k in _KEYS if line.startswith(k)), None)
        if key is None:
            break
        if key in seen:
            raise MalformedPatch(
                f"'{key.decode().strip()}' twice in one file header",
                reason="malformed",
                file=patch,
                line=index + 1,
            )
        seen.add(key)
        _take(head, key, line[len(key) :], patch, index + 1)
        index += 1
    _consistent(head, patch)
    return head, index


def crlf(patch: str, line: int) -> MalformedPatch:
    """What something did to a patch file that git would keep as it is."""
    return MalformedPatch(
        "the patch file has CRLF line ends",
        reason="crlf",
        file=patch,
        line=line,
        hint="store patches with '*.patch -text' in .gitattributes; patchforge never converts",
    )


def _take(head: GitHeader, key: bytes, value: bytes, patch: str, line: int) -> None:
    if key in (b"old mode ", b"deleted file mode "):
        head.old_mode = _mode(value, patch, line)
        head.deleted |= key.startswith(b"deleted")
    elif key in (b"new mode ", b"new file mode "):
        head.new_mode = _mode(value, patch, line)
        head.created |= key == b"new file mode "
    elif key == b"index ":
        match = _INDEX.match(value)
        if match is None and value.endswith(b"\r"):
            raise crlf(patch, line)
        if match is None:
            raise MalformedPatch("malformed 'index' line", reason="malformed", file=patch, line=line)
        head.old_id, head.new_id = match.group(1).decode(), match.group(2).decode()
        head.index_mode = _mode(match.group(3), patch, line) if match.group(3) else None
    elif key.endswith((b"from ", b"to ")):
        try:
            name = unquote(value)[0] if value.startswith(b'"') else value
        except BadName as error:
            raise MalformedPatch(str(error), reason="malformed", file=patch, line=line) from error
        setattr(head, key.decode().strip().replace(" ", "_"), name)


def _consistent(head: GitHeader, patch: str) -> None:
    renames = (head.rename_from is None) == (head.rename_to is None)
    copies = (head.copy_from is None) == (head.copy_to is None)
    both = head.rename_from is not None and head.copy_from is not None
    modes = (head.old_mode is None) != (head.new_mode is None) and not (head.created or head.deleted)
    if not renames or not copies or both or modes or (head.created and head.deleted):
        raise MalformedPatch(
            "the git header contradicts itself (rename/copy/mode lines do not pair up)",
            reason="malformed",
            file=patch,
            line=head.line,
        )
