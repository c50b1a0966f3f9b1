"""The names of a git section, written up to four times: they must agree."""

from __future__ import annotations

from patchforge.diff.githeader import GitHeader
from patchforge.diff.names import NULL
from patchforge.errors import MalformedPatch


def git_names(
    head: GitHeader, old: tuple[bytes, bytes] | None, new: tuple[bytes, bytes] | None, patch: str
) -> tuple[bytes, bytes]:
    """The two names of a git section, checked against each other wherever they are written."""
    if head.rename_from is not None or head.copy_from is not None:
        source, target = head.moved
        for a, b in head.names:
            if ends(a, source) and ends(b, target):
                for side, name in ((old, source), (new, target)):
                    if side is not None and not ends(side[0], name):
                        raise disagree(patch, head.line, side[0], name)
                return a, b
        raise disagree(patch, head.line, head.raw, source + b" => " + target)
    if old is None or new is None:
        for a, b in head.names:
            if a.partition(b"/")[2] == b.partition(b"/")[2] != b"":
                return a, b
        raise disagree(patch, head.line, *(head.names[0] if head.names else (head.raw, b"")))
    if head.created != (old[0] == NULL) or head.deleted != (new[0] == NULL):
        raise MalformedPatch(
            "'/dev/null' and the 'new file'/'deleted file' line do not agree",
            reason="malformed",
            file=patch,
            line=head.line,
        )
    for a, b in head.names:
        if old[0] in (a, NULL) and new[0] in (b, NULL):
            return a, b
    raise disagree(patch, head.line, head.raw, old[0] + b" " + new[0])


def ends(full: bytes, tail: bytes) -> bool:
    """True when ``full`` is ``tail`` below some directories."""
    return full == tail or full.endswith(b"/" + tail)


def disagree(patch: str, line: int, one: bytes, two: bytes) -> MalformedPatch:
    """The error that shows both names."""
    first, second = one.decode("utf-8", "backslashreplace"), two.decode("utf-8", "backslashreplace")
    return MalformedPatch(
        f"the names in the file header disagree: {first!r} and {second!r}",
        reason="malformed",
        file=patch,
        line=line,
    )
