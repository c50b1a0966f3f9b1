"""Patches in and out: every shape a patch arrives in, and mailboxes that git am takes."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from demo import CORE, LOG, NAMES, TEXT, Demo
from workspace import USER, Work

from patchforge import cli
from patchforge.errors import InputError
from patchforge.exchange.mail import letters
from patchforge.exchange.sections import cut
from patchforge.exchange.take import take
from patchforge.exchange.whole import take_series
from patchforge.series.pin import Pin

PIN = Pin("demo", "1.0", "demo", 1, ())


def repository(folder: Path) -> Path:
    """An upstream repository: the package in demo/, tests and other files beside it."""
    files = {
        "demo/core.py": CORE,
        "demo/data/text.txt": TEXT,
        "demo/__init__.py": b"",
        "demo/old name.txt": b"a\nb\nc\n",
        "tests/test_core.py": b"def test():\n    pass\n",
        "README": b"read me\n",
    }
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "start")
    return folder


def git(folder: Path, *words: str, stdin: bytes | None = None) -> bytes:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **USER}, input=stdin, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    return repository(tmp_path / "upstream")


def edit(upstream: Path) -> None:
    (upstream / "demo/core.py").write_bytes(CORE.replace(b"self.running = True", b"self.running = 1"))
    (upstream / "tests/test_core.py").write_bytes(b"def test():\n    assert True\n")
    (upstream / "new.bin").write_bytes(b"\0\1")


def commit(upstream: Path, message: str) -> None:
    git(upstream, "add", "-A")
    git(upstream, "commit", "-q", "-m", message)


def test_a_mail_of_format_patch(upstream: Path) -> None:
    edit(upstream)
    commit(upstream, "Run as a number (#321)\n\nBecause numbers are quick.\n\nSigned-off-by: A <a@example.org>")
    data = git(upstream, "format-patch", "-1", "--stdout")
    (taken,) = take(data, "0001.patch", PIN, None, None)
    assert taken.name == "pr321-run-as-a-number"
    assert set(taken.left_out) == {"tests/test_core.py", "new.bin"}
    assert taken.missing == ("Upstream",)
    text, sections = cut(taken.data)
    assert len(sections) == 1
    assert sections[0].startswith(b"diff --git a/core.py b/core.py\nindex ")
    assert b"What: Run as a number\n" in text
    assert b"Kind: backport\n" in text
    assert b"Retires-when: carries #321\n" in text
    assert b"Because numbers are quick." in text
    assert b"\nAuthor: User <user@example.org>\nSigned-off-by: A <a@example.org>\n\n" in text
    assert f"Imported: 0001.patch sha256:{hashlib.sha256(data).hexdigest()}".encode() in text


def test_a_pull_request(upstream: Path) -> None:
    edit(upstream)
    commit(upstream, "Run as a number")
    url = "https://git.example.org/owner/demo/pull/77.patch"
    (taken,) = take(git(upstream, "format-patch", "-1", "--stdout"), url, PIN, None, None)
    assert taken.name == "pr77-run-as-a-number"
    assert taken.missing == ("the text that says why",)
    assert taken.data.startswith(b"Why this patch is here.\n\nKind: backport\n")
    assert b"\nAuthor: User <user@example.org>\n" in taken.data
    assert b"Upstream: https://git.example.org/owner/demo/pull/77\n" in taken.data
    assert b"Retires-when: carries #77\n" in taken.data


@pytest.mark.parametrize(
    "options", [[], ["--full-index"], ["-U0"], ["--no-prefix"], ["--src-prefix=old/", "--dst-prefix=new/"]]
)
def test_a_bare_diff(upstream: Path, options: list[str]) -> None:
    edit(upstream)
    git(upstream, "add", "-A")
    data = git(upstream, "diff", "--cached", *options)
    if "--no-prefix" in options:
        with pytest.raises(InputError):
            take(data, "x.diff", PIN, None, None)
        return
    (taken,) = take(data, "a fix.diff", PIN, None, None)
    assert taken.name == "a-fix"
    assert b"\ndiff --git a/core.py b/core.py\n" in taken.data
    assert taken.missing[:2] == ("Kind", "What")


def test_a_plain_diff_with_dates(upstream: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    subprocess.run(["cp", "-r", str(upstream), str(new)], check=True)
    edit(new)
    (new / "demo/made.py").write_bytes(b"x = 1\n")
    (new / "demo/old name.txt").unlink()
    data = subprocess.run(
        ["diff", "-ruN", "-x", ".git", "upstream", "new"], cwd=tmp_path, capture_output=True, check=False
    ).stdout
    (taken,) = take(data, "plain.diff", PIN, "plain", None)
    _, sections = cut(taken.data)
    assert [s.partition(b"\n")[0] for s in sections] == [
        b"diff --git a/core.py b/core.py",
        b"diff --git a/made.py b/made.py",
        b"diff --git a/old name.txt b/old name.txt",
    ]
    assert b"new file mode 100644\n--- /dev/null\n+++ b/made.py\n" in taken.data
    assert b"deleted file mode 100644\n--- a/old name.txt\n+++ /dev/null\n" in taken.data


def test_renames_and_quoted_names(upstream: Path) -> None:
    git(upstream, "mv", "demo/old name.txt", "demo/n\u00e9w.txt")
    (upstream / "demo/n\u00e9w.txt").write_bytes(b"a\nb\nC\n")
    commit(upstream, "Rename")
    (taken,) = take(git(upstream, "format-patch", "-1", "-M20%", "--stdout"), "r.patch", PIN, None, None)
    assert b'rename from old name.txt\nrename to "n\\303\\251w.txt"\n' in taken.data
    assert b'--- a/old name.txt\n+++ "b/n\\303\\251w.txt"\n' in taken.data


def test_a_rename_out_of_the_package_is_refused(upstream: Path) -> None:
    git(upstream, "mv", "demo/old name.txt", "moved.txt")
    commit(upstream, "Move out")
    with pytest.raises(InputError, match="is outside demo/"):
        take(git(upstream, "format-patch", "-1", "-M", "--stdout"), "r.patch", PIN, None, None)


def test_several_commits_in_one_mailbox(upstream: Path) -> None:
    edit(upstream)
    commit(upstream, "First")
    (upstream / "README").write_bytes(b"not in the package\n")
    commit(upstream, "Second")
    (upstream / "demo/data/text.txt").write_bytes(TEXT.replace(b"two", b"2"))
    commit(upstream, "Third")
    taken = take(git(upstream, "format-patch", "-3", "--stdout"), "all.mbox", PIN, None, None)
    assert [t.name for t in taken] == ["first", "third"]
    named = take(git(upstream, "format-patch", "-3", "--stdout"), "all.mbox", PIN, "mine", None)
    assert [t.name for t in named] == ["mine-1", "mine-2"]


def test_encodings_of_mails(upstream: Path) -> None:
    (upstream / "demo/data/text.txt").write_bytes(TEXT.replace(b"two", "zw\u00e9i".encode()))
    commit(upstream, "\u00c9tude n\u00b0 1\n\nC'est \u00e7a.")
    plain = git(upstream, "format-patch", "-1", "--stdout")
    import base64
    import quopri

    head, _, body = plain.partition(b"\n\n")
    head = b"\n".join(line for line in head.split(b"\n") if not line.startswith(b"Content-Transfer"))
    for name, encode in (("quoted-printable", quopri.encodestring), ("base64", base64.encodebytes)):
        data = head + f"\nContent-Transfer-Encoding: {name}\n\n".encode() + encode(body)
        (letter,) = letters(data)
        assert letter.subject == "\u00c9tude n\u00b0 1"
        (taken,) = take(data, "e.patch", PIN, None, None)
        assert "+zw\u00e9i\n".encode() in taken.data
        assert "C'est \u00e7a.".encode() in taken.data


@pytest.mark.parametrize("data", [b"", b"Hello.\n", b"From: a\nSubject: b\n\nNo diff.\n"])
def test_what_holds_no_diff(data: bytes) -> None:
    with pytest.raises(InputError, match="no unified diff"):
        take(data, "x", PIN, None, None)


def test_what_hides_a_diff_is_named(upstream: Path) -> None:
    edit(upstream)
    plain = git(upstream, "diff")
    for data, hint in (
        (gzip.compress(plain), "it is compressed"),
        (git(upstream, "diff", "--color=always"), "colours of a terminal: make it with --no-color"),
        (plain.decode().encode("utf-16"), "it is UTF-16"),
        (b"\n<!DOCTYPE html>\n<html><pre>diff</pre>", "it is a web page"),
        (git(upstream, "diff", "--no-prefix"), "its names lack a/ and b/"),
    ):
        with pytest.raises(InputError) as told:
            take(data, "x.diff", PIN, None, None)
        assert hint in str(told.value)
    (taken,) = take(git(upstream, "-c", "diff.noprefix=false", "diff"), "x.diff", PIN, None, None)
    assert taken.data.count(b"diff --git") == 1


def test_a_diff_of_other_files_only(upstream: Path) -> None:
    (upstream / "README").write_bytes(b"x\n")
    with pytest.raises(InputError, match="none of its 1 files is in demo/"):
        take(git(upstream, "diff"), "x", PIN, None, None)


def test_import_into_the_project(demo: Demo, upstream: Path, tmp_path: Path) -> None:
    demo.run("lock")
    demo.run("table", tree=False)
    edit(upstream)
    commit(upstream, "Run as a number (#321)")
    mail = tmp_path / "pr.patch"
    mail.write_bytes(git(upstream, "format-patch", "-1", "--stdout"))
    done = demo.run("import", str(mail))
    assert done.status == 1, "the first patch of the series changes the line after it: the context differs"
    assert "it does not apply" in done.out
    assert "left out, outside the package: new.bin, tests/test_core.py" in done.out
    assert (demo.patches / "pr321-run-as-a-number.patch").exists()
    assert "pr321" not in (demo.series / "series").read_text()
    assert demo.run("import", str(mail)).status == 2, "the name is taken"


def test_a_complete_patch_goes_into_series_lock_and_table(demo: Demo, tmp_path: Path) -> None:
    demo.write_patches(log=LOG)
    demo.run("lock")
    demo.run("table", tree=False)
    demo.write_patches(log=LOG, names=NAMES)
    box = tmp_path / "box"
    assert demo.run("export", "names", "--mbox", str(box), tree=False).status == 0
    (demo.patches / "names.patch").unlink()
    (demo.series / "series").write_text("log.patch\n")
    demo.run("lock")
    done = demo.run("import", str(box), "--after", "log")
    assert done.status == 0, done.err
    assert (demo.series / "series").read_text() == "log.patch\nnames.patch\n"
    assert (demo.patches / "names.patch").read_bytes() == NAMES
    assert demo.run("lock", "--check").status == 0
    assert demo.run("check-table", tree=False).status == 0
    assert demo.run("lint", "--strict", tree=False).status == 0


def test_git_am_takes_the_mailbox(demo: Demo, upstream: Path, tmp_path: Path) -> None:
    demo.write_patches(log=LOG.replace(b"The engine", b"From now on the engine\n---\nThe \xc3\xa9ngine"), names=NAMES)
    box = tmp_path / "box"
    assert demo.run("export", "--mbox", str(box), tree=False).status == 0
    git(upstream, "am", "-q", str(box))
    subjects = git(upstream, "log", "-2", "--reverse", "--format=%s").decode().split("\n")
    assert subjects[:2] == ["log: the engine counts its starts", "names: two is spelt as it should be"]
    assert b"self.starts = 1" in (upstream / "demo/core.py").read_bytes()
    assert (upstream / "demo/extra.py").read_bytes() == b"NEW = True\n"
    trailers = git(upstream, "log", "-1", "--format=%(trailers:only)").decode()
    assert "Kind: fix" in trailers


def test_export_prints_and_knows_its_patches(demo: Demo) -> None:
    done = demo.run("export", "nobody", "--mbox", "x", tree=False)
    assert done.status == 2
    assert "no patch 'nobody'" in done.err


def test_new_gives_a_message_that_refresh_takes_once_it_is_filled_in(work: Work) -> None:
    done = work.demo.run("new", "starter", str(work.directory), tree=False)
    assert done.status == 0, done.err
    message = work.directory / ".git/patchforge-message"
    text = message.read_text()
    assert "Cut-against: demo 1.0" in text
    (work.directory / "core.py").write_bytes((work.directory / "core.py").read_bytes() + b"\n# end\n")
    work.git("commit", "--quiet", "-a", "-e", "-F", str(message))
    refused = work.demo.run("refresh", str(work.directory), tree=False)
    assert refused.status == 2
    assert "Kind" in refused.err
    filled = text.replace("Kind:\n", "Kind: local\n").replace("What:\n", "What: a comment at the end\n")
    filled = filled.replace("Upstream:\n", "Upstream: none\n").replace("Retires-when:\n", "Retires-when: never\n")
    message.write_text(filled)
    work.git("commit", "--quiet", "--amend", "-e", "-F", str(message))
    unsaid = work.demo.run("refresh", str(work.directory), tree=False)
    assert unsaid.status == 2
    assert "the text is still that of the template" in unsaid.err
    message.write_text(filled.replace("Why the patch exists:", "It is here because of"))
    work.git("commit", "--quiet", "--amend", "-e", "-F", str(message))
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 0, done.err
    assert b">8" not in (work.demo.patches / "starter.patch").read_bytes()
    assert work.demo.run("new", "starter", str(work.directory), tree=False).status == 2
    assert work.demo.run("new", "no/name", str(work.directory), tree=False).status == 2


def test_import_reads_standard_input(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    class In:
        buffer = io.BytesIO(b"not a diff\n")

    monkeypatch.setattr(sys, "stdin", In())
    assert cli.run(["import", "-", "--project", str(demo.root), "--tree", str(demo.site)]) == 2


LOOSE = NAMES[NAMES.index(b"diff --git") :]
for _side in (b"a/", b"b/"):
    for _path in (b"data/text.txt", b"extra.py"):
        LOOSE = LOOSE.replace(b" " + _side + _path, b" " + _side + b"demo/" + _path)


def test_a_series_kept_elsewhere_is_adopted(demo: Demo, tmp_path: Path) -> None:
    demo.write_patches()
    for path in demo.patches.iterdir():
        path.unlink()
    other = tmp_path / "quilt"
    other.mkdir()
    (other / "log.diff").write_bytes(LOG.replace(b" a/core", b" a/demo/core").replace(b" b/core", b" b/demo/core"))
    (other / "names.patch").write_bytes(b"What: spelling\nOrigin: somewhere\n\n" + LOOSE)
    (other / "series").write_text("log.diff -p1\nnames.patch\n")
    done = demo.run("import", "--series", str(other))
    assert done.status == 0, done.err
    assert "still to be written: Kind, Upstream, Retires-when" in done.out
    assert (demo.series / "series").read_text() == "log.patch\nnames.patch\n"
    assert (demo.patches / "log.patch").read_bytes() == LOG
    text = (demo.patches / "names.patch").read_bytes()
    assert b"What: spelling\n" in text
    assert b"Origin: somewhere" in text
    assert b"diff --git a/data/text.txt b/data/text.txt" in text
    lint = demo.run("lint", tree=False)
    assert lint.status == 1
    assert "Kind" in lint.err
    filled = text.replace(b"Kind:\n", b"Kind: fix\n").replace(b"Upstream:\n", b"Upstream: none\n")
    assert b"\nCut-against: demo 1.0\n" in text
    filled = filled.replace(b"Retires-when:\n", b"Retires-when: never\n")
    (demo.patches / "names.patch").write_bytes(filled.replace(b"What: spelling", b"What: spelling it right"))
    assert demo.run("lock").status == 0
    assert demo.run("apply").status == 0


def test_a_folder_of_patches_goes_by_name(demo: Demo, tmp_path: Path) -> None:
    other = tmp_path / "folder"
    other.mkdir()
    (other / "0002-two.patch").write_bytes(LOOSE)
    (other / "0001-one.patch").write_bytes(LOOSE)
    (other / "notes.txt").write_bytes(b"x")
    assert [t.name for t in take_series(other, PIN).taken] == ["0001-one", "0002-two"]


def test_the_comments_of_an_adopted_series_come_along(demo: Demo, tmp_path: Path) -> None:
    demo.write_patches(log=LOG)
    (demo.patches / "names.patch").unlink()
    (demo.series / "series").write_text("# ours\nlog.patch\n# end\n")
    assert demo.run("lock").status == 0
    other = tmp_path / "quilt"
    other.mkdir()
    docs = b"diff --git a/docs/x b/docs/x\n--- a/docs/x\n+++ b/docs/x\n@@ -1 +1 @@\n-a\n+b\n"
    (other / "docs.patch").write_bytes(docs)
    (other / "empty.patch").write_bytes(b"nothing yet\n")
    (other / "names.patch").write_bytes(LOOSE)
    more = b"--- a/demo/__init__.py\n+++ b/demo/__init__.py\n@@ -0,0 +1 @@\n+x = 1\n"
    (other / "more.diff").write_bytes(more)
    (other / "series").write_bytes(
        b"# theirs\n\n# spelling\nnames.patch # keep\r\n# of the docs\ndocs.patch\nempty.patch\nmore.diff -p1\t# last\n# below"
    )
    done = demo.run("import", "--series", str(other), "--format", "json")
    assert done.status == 0, done.err
    assert done.json["left_out"] == [
        {"patch": "docs.patch", "reason": "nothing of it is in demo/"},
        {"patch": "empty.patch", "reason": "there is no unified diff in it"},
    ]
    assert (demo.series / "series").read_text() == (
        "# ours\nlog.patch\n# theirs\n\n# spelling\nnames.patch # keep\n# of the docs\nmore.patch # last\n# below\n# end\n"
    )


def test_what_of_an_adopted_series_is_left_out_is_said(demo: Demo, tmp_path: Path) -> None:
    other = tmp_path / "folder"
    other.mkdir()
    (other / "a.patch").write_bytes(LOOSE.replace(b"/demo/", b"/lib/demo/"))
    (other / "b.patch").write_bytes(b"diff --git a/docs/x b/docs/x\n--- a/docs/x\n+++ b/docs/x\n@@ -1 +1 @@\n-a\n+b\n")
    (demo.series / "series").write_text("")
    for path in demo.patches.iterdir():
        path.unlink()
    done = demo.run("import", "--series", str(other), "--prefix", "lib/demo/")
    assert done.status == 0, done.err
    assert "left out b.patch: nothing of it is in lib/demo/" in done.out
    assert sorted(p.name for p in demo.patches.iterdir()) == ["a.patch"]
    done = demo.run("import", "--series", str(other), "--prefix", "elsewhere")
    assert done.status == 2
    assert "none of its 2 patches has anything for the package: a.patch: nothing of it is in elsewhere/" in done.err
    done = demo.run("import", "--series", str(other), "--name", "x")
    assert done.status == 2
    assert "--name is for one patch" in done.err


def test_names_of_an_adopted_series_become_names_of_ours(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    names = ["fix.patch", "Fix.diff", "sub/fix.patch", "\u00e9.patch", "_x.patch", "y" * 220 + ".patch"]
    for number, name in enumerate(names):
        text = LOOSE.replace(b"+NEW", b"+N%d" % number)
        (tmp_path / name).write_bytes(text)
    (tmp_path / "series").write_text("".join(f"{name}\n" for name in names))
    found = [t.name for t in take_series(tmp_path, PIN).taken]
    assert found == ["fix", "Fix-2", "sub-fix", "patch", "x", "y" * 200]


def test_a_change_across_the_border_of_the_package_is_refused_in_a_series_too(tmp_path: Path) -> None:
    text = b"diff --git a/demo/a.py b/a.py\nsimilarity index 100%\nrename from demo/a.py\nrename to a.py\n"
    (tmp_path / "a.patch").write_bytes(text)
    with pytest.raises(InputError, match=r"a\.py is outside demo/"):
        take_series(tmp_path, PIN)


@pytest.mark.parametrize("words", [[], ["x.patch", "--series", "y"], ["--series", "nowhere"], ["nowhere.patch"]])
def test_import_says_what_it_wants(demo: Demo, words: list[str]) -> None:
    assert demo.run("import", *words).status == 2


def test_the_template_has_the_sentence_that_a_check_refuses() -> None:
    from patchforge import resources
    from patchforge.headers.filler import TEMPLATE

    assert f"\n\n{TEMPLATE[0]}\n\n" in resources.template("commit")


CREDITS = (
    b"Signed-off-by: A Person <a@example.org>\nSigned-off-by: B <b@example.org>\nCo-authored-by: C <c@example.org>\n"
)


def signed(patch: bytes, gap: bytes) -> bytes:
    """``patch`` as 'git commit --signoff' leaves its headers."""
    return patch.replace(b"\n\ndiff --git", b"\n" + gap + CREDITS + b"\ndiff --git", 1)


@pytest.mark.parametrize("gap", [b"", b"\n"])
def test_people_are_named_by_gits_own_trailers(demo: Demo, tmp_path: Path, gap: bytes) -> None:
    demo.write_patches(log=LOG, names=signed(NAMES, gap))
    assert demo.run("lock").status == 0
    assert demo.run("table", tree=False).status == 0
    assert demo.run("lint", tree=False).status == 0
    work = Work(demo, tmp_path / "work")
    assert demo.run("checkout", str(work.directory)).status == 0
    before = work.files()
    work.git("rebase", "--quiet", "--force-rebase", "pristine")
    assert demo.run("refresh", str(work.directory), tree=False).status == 0
    assert work.files() == before


def test_a_commit_signed_off_is_a_patch_and_goes_upstream_with_its_author(
    work: Work, upstream: Path, tmp_path: Path
) -> None:
    work.git("commit", "--quiet", "--amend", "--no-edit", "--signoff")
    done = work.demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 0, done.err
    assert b"\nSigned-off-by: User <user@example.org>\n" in (work.demo.patches / "names.patch").read_bytes()
    assert work.demo.run("refresh", "--check", str(work.directory), tree=False).status == 0
    box = tmp_path / "box"
    done = work.demo.run("export", "--mbox", str(box), tree=False)
    assert "note: no author is named in log" in done.err
    git(upstream, "am", "-q", str(box))
    said = git(
        upstream, "log", "-2", "--format=%an <%ae>|%(trailers:key=Signed-off-by,valueonly,separator=%x2C)"
    ).decode()
    assert said == "User <user@example.org>|User <user@example.org>\npatchforge <patchforge@invalid>|\n"


@pytest.mark.parametrize(
    "who",
    [
        "J\u00fcrgen \u00d6. Tester <j@example.org>",
        "O'X, J. P <j+x@example.org>",
        "J\u00f6rg O'X, Jr <j@example.org>",
        "J <j\u00fc@example.org>",
    ],
)
def test_the_author_of_what_was_taken_in_is_that_of_what_is_handed_out(
    demo: Demo, upstream: Path, tmp_path: Path, who: str
) -> None:
    demo.write_patches(log=LOG.replace(b"Retires-when", f"Author: {who}\nRetires-when".encode()))
    box = tmp_path / "box"
    assert demo.run("export", "--mbox", str(box), tree=False).status == 0
    git(upstream, "am", "-q", str(box))
    assert git(upstream, "log", "-1", "--format=%an <%ae>").decode() == f"{who}\n"
    (letter,) = letters(box.read_bytes())
    assert letter.author == who


AWKWARD = b"""\
Subject: something else
From here on all is text:
--- a/core.py
+++ b/core.py
diff --git a/x b/x
Index: x
---
-- >8 --
>From the start.
"""


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_git_am_takes_the_whole_text_and_the_very_bytes(
    demo: Demo, upstream: Path, tmp_path: Path, ends: bytes
) -> None:
    """Nothing of the text is taken for a diff, a mail or its end; carriage returns arrive, and lines of any length."""
    demo.write_patches(log=AWKWARD.replace(b"diff --git", b" diff --git") + b"\n" + LOG)
    assert demo.run("lock").status == 0
    work = Work(demo, tmp_path / "work")
    assert demo.run("checkout", str(work.directory)).status == 0
    new = ("t\u00e4st = " + "x" * 70 + "=\u00e9" * 40 + " ").encode() + ends + b"\ttab\t" + ends + b"end"
    (work.directory / "data/new.txt").write_bytes(new)
    work.git("add", "-A")
    message = work.git("log", "-1", "--format=%B").replace("Patch-Name: log", "Patch-Name: more")
    work.git("commit", "--quiet", "-F", "-", stdin=message)
    done = demo.run("refresh", str(work.directory), tree=False)
    assert done.status == 0, done.err
    box = tmp_path / "box"
    assert demo.run("export", "--mbox", str(box), tree=False).status == 0
    (mail,) = [m for m in box.read_bytes().split(b"From 0000000000")[1:] if b"PATCH 2/2" in m]
    assert max(map(len, mail.split(b"\n"))) < 80 or ends == b"\n"
    git(upstream, "am", "-q", str(box))
    assert (upstream / "demo/data/new.txt").read_bytes() == new
    for commit in ("HEAD", "HEAD~1"):
        said = git(upstream, "log", "-1", "--format=%B", commit)
        assert said.startswith((b"log: the engine", b"more: the engine"))
        for line in AWKWARD.splitlines():
            assert line in said
        assert b"\nKind: feature\n" in said
    taken = take(box.read_bytes(), "box", PIN, None, None)
    assert [t.name for t in taken] == ["log", "more"]
    assert (
        taken[1].data.partition(b"\ndiff --git")[2]
        == (demo.patches / "more.patch").read_bytes().partition(b"\ndiff --git")[2]
    )
