"""From patches to commits and back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from demo import LOG, NAMES, Demo
from workspace import Work

from patchforge.branch.message import message_of, parse_message
from patchforge.branch.order import rewritten


def test_one_commit_per_patch_with_its_headers_as_trailers(work: Work) -> None:
    subjects = work.git("log", "--reverse", "--format=%s").split("\n")
    assert subjects == [
        "pristine demo 1.0",
        "log: the engine counts its starts",
        "names: two is spelt as it should be",
    ]
    trailers = work.git("log", "-1", "--format=%(trailers:only,unfold)", "HEAD~1")
    assert "Kind: feature" in trailers
    assert "Patch-Name: log" in trailers
    assert work.git("rev-parse", "pristine") == work.git("rev-parse", "HEAD~2")
    assert work.git("status", "--porcelain") == ""
    assert (work.directory / "extra.py").read_bytes() == b"NEW = True\n"


def test_the_same_series_gives_the_same_commits(work: Work, tmp_path: Path) -> None:
    assert work.demo.run("checkout", str(tmp_path / "again")).status == 0
    again = Work(work.demo, tmp_path / "again")
    assert again.git("rev-parse", "HEAD") == work.git("rev-parse", "HEAD")


def test_an_unedited_round_trip_changes_nothing(work: Work) -> None:
    before = work.files()
    assert work.demo.run("refresh", "--check", str(work.directory), tree=False).status == 0
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 0
    assert "up to date: 2 patches" in done.out
    assert work.files() == before


def test_every_commit_made_anew_changes_nothing(work: Work) -> None:
    """Other ids, the same words and trees: the patch files keep their bytes, uncanonical as they are."""
    before = work.files()
    work.git("rebase", "--quiet", "--force-rebase", "pristine")
    work.git("commit", "--quiet", "--amend", "--no-edit", "--date=2001-01-01T00:00:00")
    assert work.demo.run("refresh", str(work.directory), tree=False).status == 0
    assert work.files() == before


def test_an_edit_in_the_middle_changes_that_patch_lock_and_nothing_else(work: Work) -> None:
    before = work.files()
    path = work.directory / "core.py"
    path.write_bytes(path.read_bytes().replace(b"self.starts = 1", b"self.starts = 2"))
    work.git("commit", "--quiet", "-a", "--fixup", "HEAD~1")
    work.git("rebase", "--quiet", "-i", "--autosquash", "pristine")
    check = work.demo.run("refresh", "--check", str(work.directory), "--format", "json", tree=False)
    assert check.status == 1
    assert [(p["name"], p["result"]) for p in check.json["patches"]] == [("log", "changed"), ("names", "kept")]
    assert work.files() == before
    assert work.demo.run("refresh", str(work.directory), tree=False).status == 0
    after = work.files()
    assert {k for k in after if after[k] != before.get(k)} == {
        "patches/demo-1.0/log.patch",
        "series/demo-1.0/lock.toml",
    }
    patch = after["patches/demo-1.0/log.patch"]
    assert patch.startswith(LOG[: LOG.index(b"diff --git")])
    assert b"+        self.starts = 2\n" in patch
    assert b"\nindex " in patch
    for command in ("lint", "check-table"):
        assert work.demo.run(command, tree=False).status == 0
    assert work.demo.run("lock", "--check").status == 0
    assert work.demo.run("refresh", "--check", str(work.directory), tree=False).status == 0


NEW = """brand-new: anything

Because it was missing.

Kind: local
What: a file that was missing
Upstream: none
Cut-against: demo 1.0
Retires-when: never
"""


def test_new_dropped_renamed_and_reordered_patches(work: Work) -> None:
    (work.demo.series / "series").write_text("# The demo.\n\n# First\nlog.patch\n# Second\nnames.patch\n")
    shutil.rmtree(work.directory)
    work.demo.run("lock")
    assert work.demo.run("checkout", str(work.directory)).status == 0
    message = work.git("log", "-1", "--format=%B").replace("Patch-Name: names", "Patch-Name: spelling")
    work.git("commit", "--quiet", "--amend", "-F", "-", stdin=message)
    (work.directory / "missing.txt").write_text("here\n")
    work.git("add", "missing.txt")
    work.git("commit", "--quiet", "-F", "-", stdin=NEW)
    work.git("rebase", "--quiet", "--onto", "pristine", "HEAD~2")
    done = work.demo.run("refresh", str(work.directory), "--format", "json", tree=False)
    assert done.status == 0, done.out
    assert [(p["name"], p["result"]) for p in done.json["patches"]] == [
        ("spelling", "renamed"),
        ("brand-new", "new"),
        ("log", "dropped"),
    ]
    files = work.files()
    assert files["patches/demo-1.0/spelling.patch"] == NAMES
    assert "patches/demo-1.0/names.patch" not in files
    assert "patches/demo-1.0/log.patch" not in files
    assert files["series/demo-1.0/series"] == b"# The demo.\n\n# First\n# Second\nspelling.patch\nbrand-new.patch\n"
    assert b"| [brand-new]" in files["PATCHES.md"]
    assert work.demo.run("apply").status == 0


def test_a_split_commit_gets_a_name_of_its_own(work: Work) -> None:
    message = work.git("log", "-1", "--format=%B")
    work.git("reset", "--quiet", "--soft", "HEAD~1")
    work.git("reset", "--quiet", "extra.py")
    work.git("commit", "--quiet", "-F", "-", stdin=message)
    work.git("add", "extra.py")
    work.git("commit", "--quiet", "-F", "-", stdin=message.replace("two is spelt", "a new file"))
    done = work.demo.run("refresh", str(work.directory), "--format", "json", tree=False)
    assert done.status == 0, done.out
    assert [(p["name"], p["result"]) for p in done.json["patches"]] == [
        ("log", "kept"),
        ("names", "changed"),
        ("names-2", "new"),
    ]


def test_two_commits_whose_names_differ_only_in_capitals(work: Work) -> None:
    message = work.git("log", "-1", "--format=%B")
    (work.directory / "more.txt").write_text("x\n")
    work.git("add", "-A")
    work.git("commit", "--quiet", "-F", "-", stdin=message.replace("Patch-Name: names", "Patch-Name: Names"))
    before = work.files()
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 2
    assert "'Names' and 'names' differ only in capitals, and many file systems cannot hold both" in done.err
    assert f"commit {work.git('rev-parse', '--short=10', 'HEAD')}: mend its trailer Patch-Name" in done.err
    assert work.files() == before


def test_a_message_in_another_encoding_is_read_as_git_says(work: Work) -> None:
    message = work.git("log", "-1", "--format=%B").replace("Numbers are names.", "N\u00fcmbers are names.")
    file = work.directory / ".git/said"
    file.write_bytes(message.encode("latin-1"))
    work.git("-c", "i18n.commitEncoding=latin1", "commit", "--quiet", "--amend", "-F", str(file))
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 0, done.err
    assert (work.demo.patches / "names.patch").read_bytes().startswith("N\u00fcmbers are names.\n".encode())


def test_a_squash_says_what_is_to_be_done_about_its_message(work: Work) -> None:
    edit = "sed -i 2s/^pick/squash/"
    work.git("rebase", "--quiet", "-i", "pristine", GIT_SEQUENCE_EDITOR=edit)
    before = work.files()
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 2
    assert "its message has the headers of several patches, 'log' and 'names', as a squash leaves it" in done.err
    assert "(log: the engine counts its starts)" in done.err
    assert "1 problem" not in done.err
    assert work.files() == before


def test_the_message_of_a_squash_with_one_header_left_is_that_of_the_patch(work: Work, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    # A person deletes the second message's headers, and leaves what git wrote above each.
    editor.write_text('#!/bin/sh\nsed -i "/^# This is the commit message #2:/,\\$d" "$1"\n')
    editor.chmod(0o755)
    edit = "sed -i 2s/^pick/squash/"
    work.git("rebase", "--quiet", "-i", "pristine", GIT_SEQUENCE_EDITOR=edit, GIT_EDITOR=str(editor))
    assert work.git("log", "-1", "--format=%B").startswith("# This is a combination of 2 commits.")
    done = work.demo.run("refresh", str(work.directory), "--format", "json", tree=False)
    assert done.status == 0, done.out
    assert [(p["name"], p["result"]) for p in done.json["patches"]] == [("log", "changed"), ("names", "dropped")]
    text = (work.demo.patches / "log.patch").read_bytes()
    assert text.partition(b"diff --git")[0] == LOG.partition(b"diff --git")[0]
    assert b"+zwei" in text


def test_a_commit_without_headers_is_named(work: Work) -> None:
    (work.directory / "x.txt").write_text("x\n")
    work.git("add", "x.txt")
    work.git("commit", "--quiet", "-m", "quick hack")
    before = work.files()
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 2
    assert "(quick hack)" in done.err
    assert "end the message with the headers" in done.err
    assert work.files() == before


def merge_in_progress(work: Work) -> None:
    work.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    (work.directory / "data/text.txt").write_text("other\n")
    work.git("commit", "--quiet", "-a", "-m", "side")
    work.git("checkout", "--quiet", "series")
    with pytest.raises(AssertionError):
        work.git("merge", "side")


def uncommitted(work: Work) -> None:
    (work.directory / "core.py").write_text("x = 1\n")


def untracked(work: Work) -> None:
    (work.directory / "notes.txt").write_text("x\n")


def unfolded(work: Work) -> None:
    work.git("commit", "--quiet", "--allow-empty", "--fixup", "HEAD")


def merged(work: Work) -> None:
    work.git("checkout", "--quiet", "-b", "side", "pristine")
    (work.directory / "y.txt").write_text("y\n")
    work.git("add", "y.txt")
    work.git("commit", "--quiet", "-m", "side")
    work.git("checkout", "--quiet", "series")
    work.git("merge", "--quiet", "--no-edit", "side")


def empty_commit(work: Work) -> None:
    work.git("commit", "--quiet", "--allow-empty", "-F", "-", stdin=NEW)


def a_link(work: Work) -> None:
    (work.directory / "link").symlink_to("core.py")
    work.git("add", "link")
    work.git("commit", "--quiet", "-F", "-", stdin=NEW)


def a_binary_file(work: Work) -> None:
    (work.directory / "blob.dat").write_bytes(b"\0\1\2")
    work.git("add", "blob.dat")
    work.git("commit", "--quiet", "-F", "-", stdin=NEW)


def other_history(work: Work) -> None:
    work.git("checkout", "--quiet", "--orphan", "fresh")
    work.git("commit", "--quiet", "-m", "fresh")


def project_changed(work: Work) -> None:
    work.demo.write_patches(log=LOG)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (merge_in_progress, "a merge is in progress"),
        (uncommitted, "work that is not committed: core.py"),
        (untracked, "work that is not committed: notes.txt"),
        (unfolded, "is still to be folded in"),
        (merged, "is a merge: a series is one line of commits"),
        (empty_commit, "changes nothing"),
        (a_link, "link is a symbolic link"),
        (a_binary_file, "text only"),
        (other_history, "HEAD does not descend from the pristine commit"),
        (project_changed, "not those that were checked out"),
    ],
)
def test_what_is_not_settled_is_refused_and_nothing_is_lost(work: Work, damage: object, message: str) -> None:
    damage(work)  # type: ignore[operator]
    before = work.files()
    head = work.git("rev-parse", "HEAD")
    status = work.git("status", "--porcelain")
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status in (1, 2)
    assert message in done.err
    assert work.files() == before
    assert (work.git("rev-parse", "HEAD"), work.git("status", "--porcelain")) == (head, status)


def test_checkout_never_writes_over_anything(work: Work) -> None:
    before = work.git("rev-parse", "HEAD")
    done = work.demo.run("checkout", str(work.directory))
    assert done.status == 2
    assert "not empty" in done.err
    assert work.git("rev-parse", "HEAD") == before


def test_checkout_of_a_tree_someone_edited_is_refused(demo: Demo, tmp_path: Path) -> None:
    path = demo.site / "demo/__init__.py"
    path.write_bytes(b"x = 1\n")
    done = demo.run("checkout", str(tmp_path / "work"))
    assert done.status == 1
    assert "not as they were installed" in done.err
    assert not (tmp_path / "work").exists()


def test_checkout_from_a_patched_tree_starts_from_the_pristine_bytes(demo: Demo, tmp_path: Path, work: Work) -> None:
    demo.run("apply")
    assert demo.run("checkout", str(tmp_path / "patched")).status == 0
    assert Work(demo, tmp_path / "patched").git("rev-parse", "HEAD") == work.git("rev-parse", "HEAD")


def test_the_environment_of_the_caller_does_not_matter(
    work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    assert work.demo.run("refresh", "--check", str(work.directory), tree=False).status == 0
    assert work.demo.run("checkout", str(tmp_path / "again")).status == 0
    assert not (tmp_path / "elsewhere").exists()


def test_a_bare_series_goes_there_and_back(demo: Demo, tmp_path: Path) -> None:
    from patchforge import cli

    quilt, tree, out = tmp_path / "quilt", demo.site / "demo", tmp_path / "bare"
    quilt.mkdir()
    plain = NAMES[NAMES.index(b"diff --git") :]
    (quilt / "one.diff").write_bytes(b"Latin \xe9 prose  \n\n\n\n" + plain)
    (quilt / "two.diff").write_bytes(LOG[LOG.index(b"--- a/core") :])
    (quilt / "series").write_text("# hello\none.diff -p1\n\ntwo.diff\n")
    before = {p.name: p.read_bytes() for p in quilt.iterdir()}
    assert cli.run(["checkout", str(out), "--quilt", str(quilt), "--tree", str(tree)]) == 0
    assert cli.run(["refresh", str(out), "--quilt", str(quilt), "--check"]) == 0
    work = Work(demo, out)
    work.git("rebase", "--quiet", "--force-rebase", "pristine")
    assert cli.run(["refresh", str(out), "--quilt", str(quilt)]) == 0
    assert {p.name: p.read_bytes() for p in quilt.iterdir()} == before


@pytest.mark.parametrize(
    "text", [b"", b"One line.\n", b"A\n\nB: c\n", b"Why.\n\nKind: fix\nWhat: something here\n  folded\n", b"  \n# x\n"]
)
@pytest.mark.parametrize("series_patch", [True, False])
def test_messages_go_there_and_back(text: bytes, series_patch: bool) -> None:
    message = parse_message(message_of("a-name", text, series_patch))
    assert message.name == "a-name"
    assert message.text == text.strip(b"\n")


SERIES = "# top\n\n# one\na.patch\nb.patch  # two\n\n# three\nc.patch\n# end\n"


@pytest.mark.parametrize(
    ("new", "renamed", "text"),
    [
        (["a.patch", "b.patch", "c.patch"], {}, SERIES),
        (["a.patch", "c.patch"], {}, "# top\n\n# one\na.patch\n\n# three\nc.patch\n# end\n"),
        (["b.patch", "c.patch"], {}, "# top\n\n# one\nb.patch  # two\n\n# three\nc.patch\n# end\n"),
        (["a.patch", "n.patch", "b.patch", "c.patch"], {}, SERIES.replace("a.patch\n", "a.patch\nn.patch\n")),
        (["a.patch", "z.patch", "c.patch"], {"b.patch": "z.patch"}, SERIES.replace("b.patch", "z.patch")),
        (["c.patch", "a.patch", "b.patch"], {}, "# top\n\n# three\nc.patch\n# one\na.patch\nb.patch  # two\n# end\n"),
        ([], {}, "# top\n\n# one\n\n# three\n# end\n"),
    ],
)
def test_the_series_file_keeps_its_comments(new: list[str], renamed: dict[str, str], text: str) -> None:
    assert rewritten(SERIES, ["a.patch", "b.patch", "c.patch"], new, renamed) == text


def test_a_series_file_is_taken_apart_as_it_is_read() -> None:
    """A byte order mark in front, and characters that end lines elsewhere, inside of comments."""
    text = "\ufeff# one\u2028two\x0cthree\na.patch\nb.patch # x\x85y\n"
    assert (
        rewritten(text, ["a.patch", "b.patch"], ["b.patch"], {}) == "\ufeff# one\u2028two\x0cthree\nb.patch # x\x85y\n"
    )
    moved = "\ufeffb.patch # x\x85y\n# one\u2028two\x0cthree\na.patch\n"
    assert rewritten(text, ["a.patch", "b.patch"], ["b.patch", "a.patch"], {}) == moved


@pytest.mark.parametrize("text", ["", "# About all of them\n", "# About all of them\n\n# and more"])
def test_the_first_patches_go_below_what_is_said_of_all(text: str) -> None:
    whole = text + "\n" * bool(text and not text.endswith("\n"))
    assert rewritten(text, [], ["a.patch", "b.patch"], {}) == f"{whole}a.patch\nb.patch\n"


@pytest.mark.parametrize("name", ["../outside", "/tmp/x", "a/b", ".hidden", ""])
def test_a_name_that_leaves_the_patch_directory_is_refused(work: Work, name: str) -> None:
    message = work.git("log", "-1", "--format=%B").replace("Patch-Name: names", f"Patch-Name: {name}")
    work.git("commit", "--quiet", "--amend", "-F", "-", stdin=message)
    before = work.files()
    done = work.demo.run("refresh", str(work.directory), tree=False)
    if name == "":  # no name: the subject gives one
        assert done.status == 0
        return
    assert done.status == 2
    assert "cannot be a patch's name" in done.err
    assert work.files() == before


def test_a_second_commit_of_a_patch_is_new_and_the_first_one_stays(work: Work) -> None:
    """Both say the same words: neither is a renamed other."""
    message = work.git("log", "-1", "--format=%B")
    work.git("reset", "--quiet", "--soft", "HEAD~1")
    work.git("reset", "--quiet", "extra.py")
    work.git("commit", "--quiet", "-F", "-", stdin=message)
    work.git("add", "extra.py")
    work.git("commit", "--quiet", "-F", "-", stdin=message)
    done = work.demo.run("refresh", str(work.directory), "--format", "json", tree=False)
    assert done.status == 0, done.out
    found = [(p["name"], p["result"], p.get("was")) for p in done.json["patches"]]
    assert found[:2] == [("log", "kept", None), ("names", "changed", None)]
    assert found[2][1:] == ("new", None)
    order = (work.demo.series / "series").read_text().split()
    assert order[:2] == ["log.patch", "names.patch"]
    assert len(order) == 3


def test_a_patch_file_the_series_does_not_list_is_not_overwritten(work: Work) -> None:
    precious = work.demo.patches / "zed.patch"
    precious.write_bytes(b"precious\n")
    (work.directory / "zed.py").write_bytes(b"Z = 1\n")
    work.git("add", "zed.py")
    message = work.git("log", "-1", "--format=%B").replace("Patch-Name: names", "Patch-Name: zed")
    work.git("commit", "--quiet", "-F", "-", stdin=message)
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 2
    assert "the series does not list" in done.err
    assert precious.read_bytes() == b"precious\n"


def test_checkout_after_a_drop_starts_from_the_release(work: Work, tmp_path: Path) -> None:
    """The tree still holds the dropped patch: its bytes must not become the pristine ones."""
    demo = work.demo
    demo.run("apply")
    assert demo.run("drop", "names").status == 0
    done = demo.run("checkout", str(tmp_path / "later"))
    assert done.status == 0, done.err
    later = Work(demo, tmp_path / "later")
    assert later.git("rev-parse", "pristine^{tree}") == work.git("rev-parse", "pristine^{tree}")


@pytest.mark.parametrize("how", [[], ["--full"]])
def test_verify_names_what_a_dropped_patch_left(work: Work, how: list[str]) -> None:
    demo = work.demo
    demo.run("apply")
    assert demo.run("verify", *how).status == 0
    demo.run("drop", "names")
    done = demo.run("verify", *how)
    assert done.status == 1
    assert "changed by names, which this series does not have" in done.err + done.out
    assert demo.run("apply").status == 0
    assert demo.run("verify", *how).status == 0


def test_a_name_with_its_suffix_is_the_name(work: Work) -> None:
    message = work.git("log", "-1", "--format=%B").replace("Patch-Name: names", "Patch-Name: names.patch")
    work.git("commit", "--quiet", "--amend", "-F", "-", stdin=message)
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 0, done.err
    assert sorted(p.name for p in work.demo.patches.iterdir()) == ["log.patch", "names.patch"]


def test_a_commit_in_another_encoding_becomes_utf8(work: Work) -> None:
    message = work.git("log", "-1", "--format=%B").replace("Numbers are names.", "Zahlen für Namen.")
    file = work.directory.parent / "message"
    file.write_bytes(message.encode("latin-1"))
    work.git("-c", "i18n.commitEncoding=latin1", "commit", "--quiet", "--amend", "-F", str(file))
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 0, done.err
    assert "Zahlen für Namen.".encode() in (work.demo.patches / "names.patch").read_bytes()
