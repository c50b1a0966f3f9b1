"""Lookup drafting in plain Python: what the kernels must do, slowly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Match(NamedTuple):
    """The length of a match, 0 for none, and the tokens that followed it."""

    length: int
    following: list[int]


def search(history: list[int], shortest: int, longest: int, back: int) -> Match:
    """Where the longest suffix ended before, the latest among equals: every place is tried."""
    last = len(history) - 1
    best = (0, -1)
    for end in range(max(shortest - 1, len(history) - back), last):
        length = 0
        while length < longest and length <= end and history[end - length] == history[last - length]:
            length += 1
        if length >= shortest:
            best = max(best, (length, end))
    length, end = best
    return Match(length, history[end + 1 :] if length else [])


@dataclass(frozen=True)
class Rules:
    """Thresholds, in tokens: of a match that stands alone, of a shorter one and how many drafts must agree with it,
    of one past the drafter's block, of one that allows a longer block."""

    shortest: int
    strong: int
    agree: int
    tail: int
    long: int


class Fused(NamedTuple):
    """The drafts, which of them have a draft distribution of one token, and whether a longer block is wanted."""

    drafts: list[int]
    used: list[bool]
    wanted: bool


def fuse(drafted: list[int], match: Match, block: int, rules: Rules) -> Fused:
    """The drafter's first ``block`` tokens and the looked-up ones, of which ``len(drafted)`` are verified."""
    found = match.following[: len(drafted)]
    agree = 0
    while agree < min(block, len(found)) and drafted[agree] == found[agree]:
        agree += 1
    strong = match.length >= rules.strong
    agreed = not strong and match.length >= rules.shortest and agree >= rules.agree
    tail = match.length >= rules.tail and (strong or agreed or agree == block)
    drafts, used = list(drafted), [False] * len(drafted)
    for step in range(len(drafted)):
        head = strong or (agreed and step >= rules.agree)
        taken = step < len(found) and (head if step < block else tail)
        if taken or step >= block:
            drafts[step], used[step] = (found[step] if taken else 0), True
    return Fused(drafts, used, match.length >= rules.long and len(found) > block and tail)
