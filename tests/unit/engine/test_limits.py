"""Bounded work on any input: what would take long is refused, and the quick ways to an answer give the same one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from patchforge.diff import parse_patch
from patchforge.engine.scope import Scopes
from patchforge.engine.search import Search, fits
from trees import Bench, failure_text

HEAD = b"--- a/f\n+++ b/f\n"


def test_many_sections_of_one_big_file(bench: Bench) -> None:
    bench.put("f", b"x\n" * 100_000)
    section = b"--- a/f\n+++ b/f\n@@ -%d,3 +%d,3 @@\n x\n-x\n+y\n x\n"
    done = bench.apply(b"".join(section % (n * 3 + 1, n * 3 + 1) for n in range(1000)))
    reason, text = failure_text(done)
    assert reason == "limit"
    assert "merge the sections" in text


def test_many_hunks_of_frequent_lines_that_are_nowhere(bench: Bench) -> None:
    """Every line of every hunk stands a hundred times in the file, and no hunk does: only reading the file tells."""
    block = b"".join(b"a%d\n" % n for n in range(5000))
    bench.put("f", block * 100)
    hunk = b"@@ -%d,3 +%d,3 @@\n a1\n-a3\n+b\n a2\n"
    done = bench.apply(
        HEAD + b"@@ -7,3 +7,3 @@\n a6\n-a7\n+b\n a8\n" + b"".join(hunk % (n * 4, n * 4) for n in range(3, 3000))
    )
    reason, text = failure_text(done)
    assert reason == "context"
    assert "hunk 2" in text


LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b""]), min_size=1, max_size=40)


@settings(max_examples=300, deadline=None)
@given(LINES, LINES, st.integers(0, 36), st.integers(1, 4))
def test_the_index_finds_what_reading_finds(file: list[bytes], other: list[bytes], at: int, size: int) -> None:
    lines = [*file, b""]
    at = min(at, len(file) - 1)
    for old in (file[at : at + size + 1], other[: size + 1]):
        if len(old) < 2:
            continue
        body = b" " + old[0] + b"\n" + b"-" + old[1] + b"\n" + b"+new\n" + b"".join(b" %s\n" % x for x in old[2:])
        (change,) = parse_patch(HEAD + b"@@ -9,%d +9,%d @@\n" % (len(old), len(old)) + body).files
        (hunk,) = change.hunks
        everywhere = [i for i in range(len(lines)) if fits(lines, hunk, i)][:10]
        search = Search(lines)
        assert search.candidates(hunk) == everywhere
        assert search.candidates(hunk) == everywhere, "the second time goes by the index"
        for low, high in ((0, len(lines)), (3, 12)):
            block = old[:2]
            want = any(lines[i : i + 2] == block for i in range(low, high - 1) if i + 2 <= len(lines))
            assert Search(lines).stands(block, low, high) == want


def test_scopes_by_line() -> None:
    source = b"x = 1\n\nclass A:\n    y = 2\n\n    @property\n    def run(self):\n        def inner():\n            pass\n        return inner\n\nz = 3\n"
    scopes = Scopes(source.split(b"\n"))
    want = {0: "", 2: "A", 3: "A", 5: "A.run", 6: "A.run", 8: "A.run.inner", 9: "A.run", 11: "", 99: "", -1: ""}
    assert {line: scopes.at(line) for line in want} == want
    assert scopes.headings(3) == (b"class A:", b"class A:")
    assert scopes.headings(9) == (b"def inner():", b"class A:")
    assert scopes.count(b"def run") == 1
    assert scopes.count(b"nothing") == 0


def test_scopes_by_indentation_where_python_cannot_parse() -> None:
    source = b"class A:\n    def run(self):\n        print 'old'\n\nclass B:\n    def run(self):\n        print 'old'\n"
    scopes = Scopes(source.split(b"\n"))
    assert scopes.at(2) == "A.run"
    assert scopes.at(6) == "B.run"
