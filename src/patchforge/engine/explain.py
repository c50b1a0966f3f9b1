"""What stands in the file where a hunk was meant to go."""

from __future__ import annotations

from collections import Counter

from patchforge.diff import Hunk

_MAX_LINES = 24
_MAX_WIDTH = 160


def nearest(lines: list[bytes], hunk: Hunk) -> tuple[str, ...]:
    """A small diff between what ``hunk`` expects and the region of the file most like it; empty when none is.

    The region is found by voting: every line the two have in common votes for the shift that would bring it in place.
    Linear in the file and the hunk.
    """
    at = nearest_index(lines, hunk)
    if at is None:
        return ()
    import difflib

    have = lines[max(at, 0) : max(at, 0) + len(hunk.old) + 2]
    expected = [_show(line) for line in hunk.old[:200]]
    found = [_show(line) for line in have[:200]]
    out = [f"nearest region: line {max(at, 0) + 1}  (- the patch expects, + the tree has)"]
    matcher = difflib.SequenceMatcher(None, expected, found, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            out += [f"  {text}" for text in expected[i1:i2]]
        else:
            out += [f"- {text}" for text in expected[i1:i2]]
            if not (tag == "insert" and j2 == len(found)):
                out += [f"+ {text}" for text in found[j1:j2]]
    return tuple(out[:_MAX_LINES])


def nearest_index(lines: list[bytes], hunk: Hunk) -> int | None:
    """The index at which most of the hunk's old lines would be in place, or ``None``."""
    wanted: dict[bytes, list[int]] = {}
    for i, line in enumerate(hunk.old):
        if len(line.strip()) > 2:
            wanted.setdefault(line, []).append(i)
    votes: Counter[int] = Counter()
    counts: Counter[bytes] = Counter()
    for i, line in enumerate(lines):
        offsets = wanted.get(line)
        if offsets is None or counts[line] > 50:
            continue
        counts[line] += 1
        for j in offsets[:8]:
            votes[i - j] += 1
    if not votes:
        return None
    want = hunk.old_start - 1
    best = max(votes.items(), key=lambda item: (item[1], -abs(item[0] - want)))
    return best[0]


def _show(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").replace("\r", "\\r").replace("\t", "    ")
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return text[:_MAX_WIDTH]
