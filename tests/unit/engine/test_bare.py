"""Bare mode: how much of a series stands in a tree, and bringing it to any patch of the series."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchforge.engine.apply import ApplyOptions, apply_series
from patchforge.engine.revert import revert_bare
from patchforge.engine.verify import verify
from patchforge.errors import InputError
from patchforge.series.project import load_quilt
from patchforge.tree.target import open_bare
from trees import Bench, snapshot

CHANGE = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
REMOVE = b"diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-B\n-c\n"
CREATE = b"diff --git a/g b/g\nnew file mode 100755\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+g\n"
AGAIN = b"diff --git a/g b/h\nold mode 100755\nnew mode 100644\nsimilarity index 50%\nrename from g\nrename to h\n"
SERIES = (CHANGE, REMOVE, CREATE, AGAIN)
COPY = b"diff --git a/f b/copy\nsimilarity index 60%\ncopy from f\ncopy to copy\n--- a/f\n+++ b/copy\n@@ -1,3 +1,3 @@\n a\n-b\n+X\n c\n"
WHOLE_COPY = b"diff --git a/f b/same\nsimilarity index 100%\ncopy from f\ncopy to same\n"


def apply(bench: Bench, upto: str | None = None, dry_run: bool = False) -> tuple[str, list[str], tuple[str, ...]]:
    with open_bare(bench.tree, write=not dry_run) as target:
        done = apply_series(load_quilt(bench.patches, 1), target, None, ApplyOptions(upto=upto, dry_run=dry_run))
        return done.outcome, [r.result for r in done.results], done.notes


def revert(bench: Bench) -> str:
    with open_bare(bench.tree, write=True) as target:
        return revert_bare(load_quilt(bench.patches, 1), target).outcome


def status(bench: Bench) -> tuple[str, list[str]]:
    with open_bare(bench.tree, write=False) as target:
        found = verify(load_quilt(bench.patches, 1), target)
        return found.result, [p.result for p in found.patches]


@pytest.fixture
def ready(bench: Bench) -> Bench:
    bench.put("f", b"a\nb\nc\n")
    bench.series(*SERIES)
    return bench


def states(bench: Bench) -> list[dict[str, tuple[str, int, bytes]]]:
    """The tree with none, one, … of the patches."""
    found = [snapshot(bench.tree)]
    for number in range(1, len(SERIES) + 1):
        assert apply(bench, f"{number}.patch")[0] == "applied"
        found.append(snapshot(bench.tree))
    assert revert(bench) == "reverted"
    assert snapshot(bench.tree) == found[0]
    return found


def test_every_way_from_one_patch_to_another(ready: Bench) -> None:
    """Forward, back, or not at all: always exactly the tree that patch leaves."""
    expected = states(ready)
    for start in range(len(SERIES) + 1):
        for end in range(1, len(SERIES) + 1):
            revert(ready)
            if start:
                apply(ready, f"{start}.patch")
            assert snapshot(ready.tree) == expected[start]
            apply(ready, f"{end}.patch", dry_run=True)
            assert snapshot(ready.tree) == expected[start]
            outcome, results, notes = apply(ready, f"{end}.patch")
            assert outcome == ("already" if start == end else "applied")
            assert results == ["already"] * min(start, end) + ["applied"] * (end - start)
            assert bool(notes) == (start > end)
            assert snapshot(ready.tree) == expected[end]
            words = ["applied"] * end + ["pristine"] * (len(SERIES) - end)
            assert status(ready) == ("applied" if end == len(SERIES) else "partly", words)


def test_the_rest_of_a_series_goes_on_and_all_of_it_comes_off(ready: Bench) -> None:
    expected = states(ready)
    assert apply(ready, "1.patch")[0] == "applied"
    assert apply(ready) == ("applied", ["already", "applied", "applied", "applied"], ())
    assert snapshot(ready.tree) == expected[-1]
    assert revert(ready) == "reverted"
    assert snapshot(ready.tree) == expected[0]
    assert revert(ready) == "pristine"


def test_copies_are_known_and_come_off(bench: Bench) -> None:
    bench.put("f", b"a\nb\nc\n")
    bench.series(COPY, WHOLE_COPY + CHANGE, CREATE)
    before = snapshot(bench.tree)
    assert apply(bench)[0] == "applied"
    after = snapshot(bench.tree)
    assert after["copy"][2] == b"a\nX\nc\n" and after["same"][2] == b"a\nb\nc\n" and after["f"][2] == b"a\nB\nc\n"
    assert status(bench) == ("applied", ["applied"] * 3)
    assert apply(bench)[0] == "already"
    assert snapshot(bench.tree) == after
    assert revert(bench) == "reverted"
    assert snapshot(bench.tree) == before
    assert status(bench) == ("pristine", ["pristine"] * 3)


@pytest.mark.parametrize("target", ["copy", "same"])
def test_a_copy_that_was_edited_is_not_thrown_away(bench: Bench, target: str) -> None:
    bench.put("f", b"a\nb\nc\n")
    bench.series(COPY + WHOLE_COPY)
    assert apply(bench)[0] == "applied"
    bench.put(target, b"precious\n")
    before = snapshot(bench.tree)
    with pytest.raises(Exception, match="was not made by this series"):
        revert(bench)
    assert apply(bench)[0] == "failed"
    assert status(bench)[0] in ("altered", "partly")
    assert snapshot(bench.tree) == before


@pytest.mark.parametrize("damage", [b"--- a/f\n+++ b/f\n@@ -1,9 +1,3 @@\n a\n", b"nothing\n"])
def test_a_patch_that_cannot_be_read_says_nothing_of_the_tree(ready: Bench, damage: bytes) -> None:
    (ready.patches / "2.patch").write_bytes(damage)
    for look in (status, revert):
        with pytest.raises(InputError) as caught:
            look(ready)
        assert caught.value.file is not None and caught.value.file.endswith("2.patch")


ANOTHER = b"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-x\n+y\n c\n"


@pytest.mark.parametrize(
    ("patch", "content"),
    [
        (ANOTHER, b"foo\nbar\nbaz\n"),
        (ANOTHER, None),
        (b"--- a/f\n+++ b/f\n@@ -2 +1,0 @@\n-x\n", b"foo\nbar\nbaz\n"),
        (b"--- a/f\n+++ b/f\n@@ -2 +2 @@\n-x\n+y\n", b"zzz\n"),
    ],
)
def test_another_tree_is_neither_pristine_nor_patched(bench: Bench, patch: bytes, content: bytes | None) -> None:
    if content is not None:
        bench.put("f", content)
    bench.series(patch)
    with open_bare(bench.tree, write=False) as target:
        found = verify(load_quilt(bench.patches, 1), target)
    assert found.result == "altered"
    assert [p.result for p in found.patches] == ["altered"]
    assert "1.patch is not in the tree and does not fit it" in found.notes[0]
    assert not any(": its hunk in" in line or ": all" in line for p in found.patches for line in p.hunks)


def test_a_directory_where_the_tree_has_a_file_is_refused_by_name(bench: Bench, tmp_path: Path) -> None:
    bench.put("f", b"a\nB\nc\n")
    bench.series(REMOVE, CREATE.replace(b"g b/g", b"f/in b/f/in").replace(b"b/g", b"b/f/in"))
    before = snapshot(bench.tree)
    with open_bare(bench.tree, write=True) as target:
        done = apply_series(load_quilt(bench.patches, 1), target, None, ApplyOptions())
    (failure,) = (r.failure for r in done.results if r.failure)
    assert failure.reason == "exists"
    assert failure.message == "the series makes f both a file and a directory"
    assert failure.line is not None
    assert snapshot(bench.tree) == before
