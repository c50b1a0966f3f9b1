"""How much a change says, in words: names, strings, numbers.

A unit that says little is equal in a release by chance: half of all modules have the same line for their logger.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from patchforge.evidence.definitions import Definition

ENOUGH = 8
"""Words that are no coincidence when they are equal together."""

_WORD = re.compile(r"'(?:[^'\\]|\\.)+'|\"(?:[^\"\\]|\\.)+\"|\b\d[\w.]*|\b(?:None|True|False)\b")

_NAME = re.compile(rb"\w+")


def words(definition: Definition | None) -> Counter[str]:
    """The words of what a definition says; none where there is no definition."""
    return _counted(definition.says) if definition is not None else Counter()


@lru_cache(maxsize=4096)
def _counted(says: str) -> Counter[str]:
    return Counter(_WORD.findall(says))


def weighed(old: Definition | None, patched: Definition | None, new: Definition | None) -> tuple[int, int]:
    """How many words a patch adds to and takes from a definition, and with how many of them the release did the same.

    Whole lines that it adds are told from chance however much else the release changed.  Words by themselves are not where they
    are but a small part of that: a table that grows by hundreds of words has a dozen in common with any patch of it.
    """
    before, after, now = words(old), words(patched), words(new)
    added, removed = after - before, before - after
    came, went = now - before, before - now
    weight = added.total() + removed.total()
    did = (added & came).total() + (removed & went).total()
    alike = did * 3 >= came.total() + went.total()
    put = _lines(patched) - _lines(old)
    stands = (put & (_lines(new) - _lines(old))).total() / put.total() if put else 0.0
    return weight, max(did if alike else 0, int(stands * weight))


def _lines(definition: Definition | None) -> Counter[bytes]:
    """The lines of a definition that say something, without indentation: comments and lines of a single word do not."""
    lines = [line.strip() for line in definition.source.split(b"\n")] if definition is not None else []
    return Counter(line for line in lines if not line.startswith(b"#") and len(_NAME.findall(line)) > 1)
