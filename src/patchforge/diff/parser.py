"""Parsing a patch file into changes, from bytes and without guessing.

A patch file is prose, then sections.  A section starts with a git header (``diff --git``) or with ``---``, ``+++``
and a hunk header on three successive lines; anything else before the first section is prose.  After a
section only blank lines, a mail signature, and the command lines other tools print between files may
stand.  Memory and time are linear in the input.
"""

from __future__ import annotations

from patchforge.diff.agree import disagree, git_names
from patchforge.diff.githeader import GitHeader, crlf, read_git_header
from patchforge.diff.hunks import read_hunk, starts_hunk
from patchforge.diff.model import FileDiff, Finding, Hunk, Patch
from patchforge.diff.names import NULL, BadName, is_epoch, split_header, tree_path
from patchforge.errors import MalformedPatch

MAX_BYTES = 64 * 1024 * 1024
_BETWEEN = (b"diff ", b"Index: ", b"=====")


def split_lines(data: bytes) -> tuple[list[bytes], bool]:
    """The lines of ``data`` without their newline, and whether the last one had none."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
        return lines, False
    return lines, True


def section_start(lines: list[bytes], i: int) -> bool:
    """True when a file section starts at ``lines[i]``."""
    line = lines[i]
    if line.startswith(b"diff --git "):
        return True
    return (
        line.startswith(b"--- ")
        and i + 2 < len(lines)
        and lines[i + 1].startswith(b"+++ ")
        and starts_hunk(lines[i + 2])
    )


def first_section(lines: list[bytes]) -> int | None:
    """Index of the first line of the first section, or ``None``."""
    for i, line in enumerate(lines):
        if line[:4] in (b"--- ", b"diff") and section_start(lines, i):
            return i
    return None


def parse_patch(data: bytes, label: str = "patch", strip: int = 1, name: str | None = None) -> Patch:
    """Parse ``data``; ``label`` is the file errors show, ``strip`` the number of leading name components to remove.

    Raises :class:`MalformedPatch` (with ``file`` = ``label`` and the line) for whatever cannot be applied strictly.
    """
    if len(data) > MAX_BYTES:
        raise MalformedPatch(f"the patch is larger than {MAX_BYTES >> 20} MiB", reason="malformed", file=label)
    lines, unterminated = split_lines(data)
    start = first_section(lines)
    if start is None:
        raise _no_diff(lines, label)
    files: list[FileDiff] = []
    findings: list[Finding] = []
    index = start
    while index < len(lines):
        line = lines[index]
        if section_start(lines, index):
            change, index = _section(lines, index, label, strip, unterminated)
            files.append(change)
        elif line == b"-- " or (line == b"--" and index + 3 > len(lines)):
            _signature(lines, index, label)
            break
        elif line == b"" or line.startswith(_BETWEEN):
            _refuse_other_formats(lines, index, label)
            index += 1
        else:
            raise _stray(lines, index, label)
    _lint(files, findings)
    text = b"\n".join(lines[:start]) + b"\n" if start else b""
    return Patch(name or label, label, text, start + 1, tuple(files), tuple(findings))


def _section(lines: list[bytes], at: int, patch: str, strip: int, unterminated: bool) -> tuple[FileDiff, int]:
    head: GitHeader | None = None
    index = at
    if lines[at].startswith(b"diff --git "):
        head, index = read_git_header(lines, at, patch)
        if index < len(lines) and lines[index].startswith((b"GIT binary patch", b"Binary files ")):
            raise MalformedPatch(
                "a binary change: the data of a patch must be text",
                reason="binary",
                file=patch,
                line=index + 1,
                hint="ship the file another way, or keep it out of the diff",
            )
    old = new = None
    if index + 1 < len(lines) and lines[index].startswith(b"--- ") and lines[index + 1].startswith(b"+++ "):
        if lines[index].endswith(b"\r") and lines[index + 1].endswith(b"\r"):
            raise crlf(patch, index + 1)
        try:
            old, new = split_header(lines[index][4:]), split_header(lines[index + 1][4:])
        except BadName as error:
            raise MalformedPatch(str(error), reason="malformed", file=patch, line=index + 1) from error
        index += 2
    hunks: list[Hunk] = []
    while index < len(lines) and starts_hunk(lines[index]):
        if old is None:
            raise MalformedPatch("a hunk without '---' and '+++' lines", reason="malformed", file=patch, line=index + 1)
        hunk, index = read_hunk(lines, index, patch, unterminated)
        if hunks:
            _ordered(hunks[-1], hunk, patch)
        hunks.append(hunk)
    if old is not None and not hunks:
        raise MalformedPatch("a file header without hunks", reason="malformed", file=patch, line=index)
    return _change(head, old, new, tuple(hunks), at + 1, patch, strip), index


def _ordered(before: Hunk, hunk: Hunk, patch: str) -> None:
    end = before.old_start + before.old_len if before.old_len else before.old_start + 1
    start = hunk.old_start if hunk.old_len else hunk.old_start + 1
    if start < end:
        raise MalformedPatch(
            f"the hunk overlaps or precedes the one of line {before.line}: hunks must be ordered and disjoint",
            reason="malformed",
            file=patch,
            line=hunk.line,
        )


def _change(
    head: GitHeader | None,
    old: tuple[bytes, bytes] | None,
    new: tuple[bytes, bytes] | None,
    hunks: tuple[Hunk, ...],
    line: int,
    patch: str,
    strip: int,
) -> FileDiff:
    if head is None:
        assert old is not None and new is not None
        return _plain(old, new, hunks, line, patch, strip)
    pair = git_names(head, old, new, patch)
    old_path: str | None
    new_path: str | None
    if head.rename_from is not None or head.copy_from is not None:
        action = "rename" if head.rename_from is not None else "copy"
        inner = max(strip - 1, 0)
        source, target = head.moved
        old_path, new_path = tree_path(source, inner, line, patch), tree_path(target, inner, line, patch)
        if old_path == new_path:
            raise MalformedPatch(f"{action} of a file to itself", reason="malformed", file=patch, line=line)
    else:
        action = "create" if head.created else "delete" if head.deleted else "modify"
        old_path = None if head.created else tree_path(pair[0], strip, line, patch)
        new_path = None if head.deleted else tree_path(pair[1], strip, line, patch)
        if action == "modify" and old_path != new_path:
            raise disagree(patch, line, pair[0], pair[1])
    if action == "modify" and not hunks and head.new_mode in (None, head.old_mode):
        raise MalformedPatch("a git header that changes nothing", reason="malformed", file=patch, line=line)
    old_mode = head.old_mode if head.old_mode is not None else head.index_mode
    new_mode = head.new_mode
    if action in ("create", "delete"):
        _whole(action, hunks, line, patch)
    return FileDiff(line, action, old_path, new_path, old_mode, new_mode, hunks, True, head.old_id, head.new_id)


def _plain(
    old: tuple[bytes, bytes], new: tuple[bytes, bytes], hunks: tuple[Hunk, ...], line: int, patch: str, strip: int
) -> FileDiff:
    first, last = hunks[0], hunks[-1]
    created = old[0] == NULL or (is_epoch(old[1]) and first.old_start == 0 and first.old_len == 0)
    deleted = new[0] == NULL or (is_epoch(new[1]) and last.new_start == 0 and last.new_len == 0)
    if created and deleted:
        raise MalformedPatch("neither side of the file exists", reason="malformed", file=patch, line=line)
    action = "create" if created else "delete" if deleted else "modify"
    old_path = None if created else tree_path(old[0], strip, line, patch)
    new_path = None if deleted else tree_path(new[0], strip, line + 1, patch)
    if action == "modify" and old_path != new_path:
        raise disagree(patch, line, old[0], new[0])
    if action != "modify":
        _whole(action, hunks, line, patch)
    return FileDiff(line, action, old_path, new_path, None, None, hunks, False)


def _whole(action: str, hunks: tuple[Hunk, ...], line: int, patch: str) -> None:
    """A creation has one hunk from nothing, a deletion one hunk to nothing."""
    if not hunks:
        return
    side = "old" if action == "create" else "new"
    only = hunks[0]
    length = only.old_len if action == "create" else only.new_len
    start = only.old_start if action == "create" else only.new_start
    if len(hunks) > 1 or length or start:
        raise MalformedPatch(
            f"the file is {'new' if side == 'old' else 'deleted'}, yet its hunk has lines on the {side} side",
            reason="malformed",
            file=patch,
            line=only.line,
        )


def _refuse_other_formats(lines: list[bytes], index: int, patch: str) -> None:
    line = lines[index]
    if line.startswith((b"diff --cc ", b"diff --combined ")):
        raise MalformedPatch(
            "a combined diff (of a merge): unified diffs only", reason="malformed", file=patch, line=index + 1
        )


def _signature(lines: list[bytes], index: int, patch: str) -> None:
    """After ``-- `` at most a version line and blank lines may follow."""
    rest = [i for i in range(index + 1, len(lines)) if lines[i].strip()]
    if len(rest) > 1:
        raise _stray(lines, rest[1], patch)


def _stray(lines: list[bytes], index: int, patch: str) -> MalformedPatch:
    line = lines[index]
    shown = line.decode("utf-8", "backslashreplace")[:60]
    if line[:1] in (b" ", b"+", b"-", b"\\"):
        return MalformedPatch(
            f"a line after the end of its hunk: {shown!r}",
            reason="malformed",
            file=patch,
            line=index + 1,
            hint="the counts in the hunk header are too small: recount them",
        )
    if line.startswith(b"@@"):
        what = "a combined diff (of a merge): unified diffs only" if line.startswith(b"@@@") else "a hunk of no file"
        return MalformedPatch(what, reason="malformed", file=patch, line=index + 1)
    if line.startswith((b"Binary files ", b"GIT binary patch", b"Files ")):
        return MalformedPatch("a binary change: text only", reason="binary", file=patch, line=index + 1)
    if line.startswith(b"Only in "):
        return MalformedPatch(
            f"{shown!r}: the diff was made without -N and lacks this file",
            reason="malformed",
            file=patch,
            line=index + 1,
        )
    return MalformedPatch(
        f"text after a hunk: {shown!r}",
        reason="malformed",
        file=patch,
        line=index + 1,
        hint="prose belongs before the first file header",
    )


def _no_diff(lines: list[bytes], patch: str) -> MalformedPatch:
    """Say what the file is instead of a unified diff."""
    for i, line in enumerate(lines):
        if line.startswith((b"diff --cc ", b"diff --combined ", b"@@@ ")):
            return MalformedPatch("a combined diff: unified diffs only", reason="malformed", file=patch, line=i + 1)
        if line.startswith(b"***************"):
            return MalformedPatch("a context diff: unified diffs only", reason="malformed", file=patch, line=i + 1)
        if line.startswith((b"Binary files ", b"GIT binary patch")):
            return MalformedPatch("a binary change: text only", reason="binary", file=patch, line=i + 1)
        if line.startswith(b"--- ") and i + 1 < len(lines) and lines[i + 1].startswith(b"+++ "):
            return MalformedPatch("a file header without hunks", reason="malformed", file=patch, line=i + 1)
    if lines and lines[0][:2] in (b"\x1f\x8b", b"BZ", b"\xfd7"):
        return MalformedPatch(
            "the file is compressed",
            reason="malformed",
            file=patch,
            line=1,
            hint="unpack it: patches are read as they lie",
        )
    return MalformedPatch(
        "no unified diff in the file",
        reason="empty",
        file=patch,
        line=max(len(lines), 1),
        hint="an empty patch, a context diff or an ed script is never applied",
    )


def _lint(files: list[FileDiff], findings: list[Finding]) -> None:
    seen: dict[str, int] = {}
    for change in files:
        if not change.git:
            findings.append(Finding("plain-header", change.line, "a plain diff header", "refresh writes the git form"))
        if change.path in seen:
            findings.append(
                Finding(
                    "duplicate-section",
                    change.line,
                    f"{change.path} has a second section (the first: line {seen[change.path]})",
                    "merge the two sections",
                    "error",
                )
            )
        seen.setdefault(change.path, change.line)
        delta = 0
        for hunk in change.hunks:
            expected = hunk.old_start + delta
            if hunk.old_len == 0:
                expected += 1
            if hunk.new_len == 0:
                expected -= 1
            if hunk.new_start != expected and change.action == "modify":
                findings.append(
                    Finding("new-start", hunk.line, f"the new line is {hunk.new_start}, counting gives {expected}")
                )
            delta += hunk.new_len - hunk.old_len
            if hunk.zero_context and change.action == "modify":
                findings.append(Finding("zero-context", hunk.line, "a hunk without context"))
            findings.extend(
                Finding("stripped-blank", line, "an empty context line without its space", "an editor stripped it")
                for line in hunk.stripped_blanks
            )
