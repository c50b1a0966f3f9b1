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


def words(definition: Definition | None) -> Counter[str]:
    """The words of what a definition says; none where there is no definition."""
    return _counted(definition.says) if definition is not None else Counter()


@lru_cache(maxsize=4096)
def _counted(says: str) -> Counter[str]:
    return Counter(_WORD.findall(says))


def weighed(old: Definition | None, patched: Definition | None, new: Definition | None) -> tuple[int, int]:
    """How many words a patch adds to and takes from a definition, and with how many of them the release did the same.

    None of them where they are but a small part of what the release did there: a table that grows by hundreds of words has a
    dozen in common with any patch of it.
    """
    before, after, now = words(old), words(patched), words(new)
    added, removed = after - before, before - after
    came, went = now - before, before - now
    did = (added & came).total() + (removed & went).total()
    alike = did * 3 >= came.total() + went.total()
    return added.total() + removed.total(), did if alike else 0
