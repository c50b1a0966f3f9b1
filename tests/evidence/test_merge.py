"""The three-way merge and its line edits, against difflib and by their own definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchforge.evidence.merge import _edits, merged

LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f", b""]), max_size=14)
MANY = st.lists(st.integers(0, 60).map(lambda n: b"%d" % n), max_size=80)


def applied(base: list[bytes], edits: list[tuple[int, int, list[bytes]]]) -> list[bytes]:
    out: list[bytes] = []
    at = 0
    for start, end, lines in edits:
        assert at <= start <= end
        out += base[at:start] + lines
        at = end
    return out + base[at:]


@given(LINES | MANY, LINES | MANY)
def test_the_edits_make_one_from_the_other(base: list[bytes], ours: list[bytes]) -> None:
    edits = _edits(base, ours)
    assert applied(base, edits) == ours
    assert all(base[start:end] != lines for start, end, lines in edits)
    assert not edits if base == ours else edits


@given(LINES, st.integers(0, 14), LINES)
def test_merging_what_is_there_is_a_no_op(base: list[bytes], at: int, lines: list[bytes]) -> None:
    at = min(at, len(base))
    new = [*base[:at], b"new", *lines, b"end", *base[at:]]
    edit = [(at, at, [b"new", *lines, b"end"])]
    assert merged(base, base, edit) == "changes"
    assert merged(base, new, edit) == "no-op"


def test_lines_moved_past_each_other_keep_the_longest_chain() -> None:
    base = [b"%d" % n for n in range(40)]
    ours = base[20:30] + base[:20] + base[30:]
    edits = _edits(base, ours)
    assert applied(base, edits) == ours
    assert sum(end - start for start, end, _ in edits) == 10
