"""A three-way merge by lines, to ask what it would do; nothing is written."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter

Edit = tuple[int, int, list[bytes]]
"""``(start, end, lines)`` against the base."""


def merged(base: list[bytes], ours: list[bytes], theirs_edits: list[Edit]) -> str:
    """What merging ``theirs_edits`` (a patch's, against ``base``) into ``ours`` would do: ``no-op``, ``changes`` or ``conflict``.

    Each of the patch's edits is compared with what the release did to the same lines of the base.
    """
    outcome = "no-op"
    release = _edits(base, ours)
    for start, end, lines in theirs_edits:
        over = [e for e in release if _meets(e, start, end)]
        if not over:
            outcome = "changes"
            continue
        low, high = min(start, over[0][0]), max(end, over[-1][1])
        there = _apply(base, low, high, over)
        if _apply(base, low, high, [(start, end, lines)]) == there or _carries(there, lines, base[start:end]):
            continue
        return "conflict"
    return outcome


def _carries(there: list[bytes], lines: list[bytes], removed: list[bytes]) -> bool:
    """True when ``lines`` stand together in what the release has there, and nothing that they replace does."""
    size = len(lines)
    if not size or any(line in there for line in removed if line.strip() and line not in lines):
        return False
    return any(there[at : at + size] == lines for at in range(len(there) - size + 1))


def _meets(edit: Edit, start: int, end: int) -> bool:
    """True when two edits touch: git's merge takes adjoining ones for a conflict too."""
    return edit[0] <= end and start <= edit[1]


def _apply(base: list[bytes], low: int, high: int, edits: list[Edit]) -> list[bytes]:
    out: list[bytes] = []
    at = low
    for start, end, lines in edits:
        out += base[at:start] + lines
        at = end
    return out + base[at:high]


def _edits(base: list[bytes], ours: list[bytes]) -> list[Edit]:
    start = 0
    limit = min(len(base), len(ours))
    while start < limit and base[start] == ours[start]:
        start += 1
    tail = 0
    while tail < limit - start and base[-1 - tail] == ours[-1 - tail]:
        tail += 1
    one, two = base[start : len(base) - tail], ours[start : len(ours) - tail]
    edits: list[Edit] = []
    at = into = 0
    for here, there in [*_anchors(one, two), (len(one), len(two))]:
        edits += _between(one, two, (at, here), (into, there), start)
        at, into = here + 1, there + 1
    return edits


def _between(
    one: list[bytes], two: list[bytes], left: tuple[int, int], right: tuple[int, int], shift: int
) -> list[Edit]:
    """The edits between two anchors."""
    old, new = one[slice(*left)], two[slice(*right)]
    base = shift + left[0]
    if old == new:
        return []
    if not old or not new:
        return [(base, base + len(old), new)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(base + i1, base + i2, new[j1:j2]) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]


def _anchors(one: list[bytes], two: list[bytes]) -> list[tuple[int, int]]:
    """Lines that stand once in each, as far as they keep their order: between them little is left to compare.

    The longest such chain, as patience sorting finds it.
    """
    places = {line: n for n, line in _once(one)}
    pairs = sorted((places[line], n) for n, line in _once(two) if line in places)
    tops: list[int] = []
    chain: list[tuple[tuple[int, int], int]] = []  # a pair, and the one before it in the longest chain that ends here
    last: list[int] = []
    for pair in pairs:
        at = bisect_left(tops, pair[1])
        chain.append((pair, last[at - 1] if at else -1))
        tops[at : at + 1] = [pair[1]]
        last[at : at + 1] = [len(chain) - 1]
    out = []
    number = last[-1] if last else -1
    while number >= 0:
        pair, number = chain[number]
        out.append(pair)
    return out[::-1]


def _once(lines: list[bytes]) -> list[tuple[int, bytes]]:
    counts = Counter(lines)
    return [(number, line) for number, line in enumerate(lines) if counts[line] == 1]
