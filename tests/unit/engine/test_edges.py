"""A hunk that was cut at an edge of a file: which edge the refusal names."""

from __future__ import annotations

import pytest

from patchforge.diff import parse_patch
from patchforge.engine.model import Entry, FileState
from patchforge.engine.plan import plan_series

FILE = b"".join(b"line %d\n" % n for n in range(12))


@pytest.mark.parametrize(
    ("hunk", "edge"),
    [
        (b"@@ -1,3 +1,4 @@\n line 0\n line 1\n line 2\n+new\n", "end"),
        (b"@@ -1,3 +1,4 @@\n+new\n line 4\n line 5\n line 6\n", "start"),
        (b"@@ -5,3 +5,4 @@\n line 4\n line 5\n line 6\n+new\n", "end"),
    ],
)
def test_the_edge_is_the_one_that_does_not_hold(hunk: bytes, edge: str) -> None:
    patch = parse_patch(b"--- a/f\n+++ b/f\n" + hunk)
    failure = plan_series([Entry(patch)], lambda path: FileState.of(FILE, False)).failure
    assert failure is not None
    assert f"the patch was cut at the {edge} of the file and this is not it" in f"{failure.message} {failure.hint}"
