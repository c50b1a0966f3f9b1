"""What a maintainer is told when an edit of the series leaves a patch with nowhere to go."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo import CORE, LOG, NAMES, TEXT, Demo
from upstream import install, make
from workspace import Work

MENU = TEXT + b"six\nseven\neight\nnine\nten\n"
HEAD = NAMES[: NAMES.index(b"diff --git")]


def on_text(lines: bytes, start: int = 1) -> bytes:
    """A patch of data/text.txt whose only hunk has ``lines``."""
    marks = [line[:1] for line in lines.splitlines()]
    old, new = (len(marks) - marks.count(other) for other in (b"+", b"-"))
    head = b"diff --git a/data/text.txt b/data/text.txt\n--- a/data/text.txt\n+++ b/data/text.txt\n"
    return HEAD + head + b"@@ -%d,%d +%d,%d @@\n" % (start, old, start, new) + lines


FIRST = on_text(b" one\n-two\n+zwei\n three\n four\n five\n")
SECOND = on_text(b" one\n zwei\n-three\n+drei\n four\n five\n")


@pytest.fixture
def stacked(demo: Demo) -> Demo:
    """``second`` changes the line after the one that ``first`` changes."""
    demo.write_patches(first=FIRST, second=SECOND)
    assert demo.run("lock").status == 0
    assert demo.run("table", tree=False).status == 0
    return demo


def test_drop_of_a_patch_another_stands_on(stacked: Demo) -> None:
    before = {p: p.read_bytes() for p in stacked.root.rglob("*") if p.is_file()}
    tree = stacked.snapshot()
    done = stacked.run("drop", "first")
    assert done.status == 1
    assert "without 'first', patch 'second' would not apply to the pristine release" in done.err
    assert "git rebase -i pristine" in done.err
    assert "graph --impact first" in done.err
    assert "nearest region: line 1" in done.out
    assert "between the series as it was and the series now:" in done.out
    assert "- zwei" in done.out and "+ two" in done.out
    proposal = stacked.root / "build/proposals/second/data/text.txt"
    assert f"proposal: {proposal} (1 conflict to resolve)" in done.out
    text = proposal.read_bytes()
    assert b"<<<<<<< the series now\ntwo\nthree\n||||||| the series as it was\nzwei\nthree\n" in text
    assert text.endswith(b"=======\nzwei\ndrei\n>>>>>>> with second\nfour\nfive\n")
    after = {p: p.read_bytes() for p in stacked.root.rglob("*") if p.is_file()}
    assert {p: d for p, d in after.items() if p != proposal} == before
    assert stacked.snapshot() == tree


def test_a_patch_edited_by_hand_that_a_later_one_stands_on(stacked: Demo) -> None:
    (stacked.patches / "first.patch").write_bytes(FIRST.replace(b"+zwei", b"+deux"))
    done = stacked.run("lock")
    assert done.status == 1
    assert "changed there before it: first" in done.out


def test_import_of_what_an_earlier_patch_is_in_the_way_of(demo: Demo, tmp_path: Path) -> None:
    """It fits the release: the proposal carries both changes."""
    demo.write_patches(first=on_text(b" one\n-two\n+zwei\n three\n four\n five\n"))
    demo.run("lock")
    demo.run("table", tree=False)
    file = tmp_path / "change.diff"
    lines = b"--- a/demo/data/text.txt\n+++ b/demo/data/text.txt\n@@ -2,4 +2,4 @@\n two\n three\n-four\n+vier\n five\n"
    file.write_bytes(b"diff --git a/demo/data/text.txt b/demo/data/text.txt\n" + lines)
    before = demo.snapshot()
    done = demo.run("import", str(file))
    assert done.status == 1
    assert "changed there before it: first" in done.out
    assert "between the pin and the series before it:" in done.out
    proposal = demo.root / "build/proposals/change/data/text.txt"
    assert f"proposal: {proposal} (it merges cleanly)" in done.out
    assert proposal.read_bytes() == b"one\nzwei\nthree\nvier\nfive\n"
    assert "the series does not list it yet: it does not apply" in done.out
    assert demo.snapshot() == before


def test_import_for_another_release_is_explained_without_a_proposal(demo: Demo, tmp_path: Path) -> None:
    """It fits nothing that is at hand: the nearest region is all there is to say."""
    upstream = make(tmp_path / "upstream")
    install(demo, upstream)
    upstream.edit("demo/cart.py", b"self.lines = []", b"self.lines = list()")
    upstream.commit("One")
    upstream.edit("demo/cart.py", b"list()\n\n    def add", b"list()\n        self.sum = 0\n\n    def add")
    upstream.commit("Two\n\nSums are kept.")
    file = tmp_path / "two.patch"
    file.write_bytes(upstream.git("format-patch", "-1", "--stdout"))
    done = demo.run("import", str(file))
    assert done.status == 1
    assert "nearest region: line 4" in done.out
    assert "-         self.lines = list()" in done.out and "+         self.lines = []" in done.out
    assert "proposal" not in done.out


def test_refresh_names_what_changed_in_the_project_meanwhile(work: Work) -> None:
    (work.demo.patches / "log.patch").write_bytes(LOG.replace(b"self.starts = 1", b"self.starts = 3"))
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 1
    assert "not those that were checked out: log is changed\n" in done.err
    work.demo.write_patches(log=LOG, more=FIRST)
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert "not those that were checked out: more is new; names is gone\n" in done.err


def test_refresh_names_the_patch_after_which_a_file_does_not_compile(work: Work) -> None:
    path = work.directory / "core.py"
    path.write_bytes(path.read_bytes().replace(b"self.starts = 1", b"self.starts = (1"))
    work.git("commit", "--quiet", "-a", "--fixup", "HEAD~1")
    work.git("rebase", "--quiet", "-i", "--autosquash", "pristine")
    before = work.files()
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 1
    assert "core.py would not compile after patch 'log': '(' was never closed" in done.err
    assert work.files() == before


def test_refresh_explains_a_patch_that_nothing_can_place(work: Work) -> None:
    """What git can do and a series cannot: a directory where the release has a file."""
    work.git("rm", "--quiet", "data/text.txt")
    message = work.git("log", "-1", "--format=%B").replace("Patch-Name: names", "Patch-Name: gone")
    work.git("commit", "--quiet", "-F", "-", stdin=message)
    (work.directory / "data").mkdir(exist_ok=True)
    (work.directory / "data/text.txt").mkdir()
    (work.directory / "data/text.txt/inside").write_bytes(b"x\n")
    work.git("add", "-A")
    work.git("commit", "--quiet", "-F", "-", stdin=message.replace("Patch-Name: gone", "Patch-Name: inside"))
    before = work.files()
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 1, done.out
    assert "patch 'inside' would not apply after 'gone': " in done.err
    assert "data/text.txt" in done.err
    assert work.files() == before


def test_refresh_explains_context_that_an_edit_took_away(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch kept as it is although its commit stands elsewhere: the lines are shown, and who changed them."""
    from patchforge.branch import back

    monkeypatch.setattr(back, "_same", lambda *_: True)  # what refresh proves itself never lets this happen
    path = work.directory / "core.py"
    work.git("checkout", "--quiet", "pristine")
    path.write_bytes(CORE.replace(b"self.running = True", b"self.running = 1"))
    new = "before: x\n\n" + HEAD.decode().strip() + "\nPatch-Name: before\n"
    work.git("commit", "--quiet", "-a", "-F", "-", stdin=new)
    work.git("cherry-pick", "-X", "theirs", "series~1", "series")
    work.git("checkout", "--quiet", "-B", "series")
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 1, done.out
    assert "patch 'log' would not apply after 'before'" in done.err
    assert "nearest region: line 4" in done.out
    assert "changed there before it: before" in done.out
    assert "between the series as it was and the series now:" in done.out
    assert (work.demo.root / "build/proposals/log/core.py").is_file()
