"""Every row of the contract: what is done, what is refused and with which words, and that a refusal changes no byte.

Where GNU patch or git do something else, the test runs them too and says what they do, so that the table cannot rot.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from patchforge.engine.apply import Applied
from trees import Bench, failure_text, snapshot

HEAD = b"--- a/f\n+++ b/f\n"
LINES = b"".join(b"line %d\n" % n for n in range(1, 31))


def edit(path: str, body: bytes) -> bytes:
    return b"--- a/%s\n+++ b/%s\n" % (path.encode(), path.encode()) + body


def change(at: int, new: bytes = b"changed", count: int = 3) -> bytes:
    """A hunk that replaces line ``at`` of LINES, with ``count`` lines of context."""
    before = b"".join(b" line %d\n" % n for n in range(at - count, at))
    after = b"".join(b" line %d\n" % n for n in range(at + 1, at + count + 1))
    size = 2 * count + 1
    return (
        b"@@ -%d,%d +%d,%d @@\n" % (at - count, size, at - count, size)
        + before
        + b"-line %d\n+%s\n" % (at, new)
        + after
    )


@dataclass(frozen=True)
class Row:
    """One row: the tree, the patches, and what must come out (``reason`` empty: applied, ``after`` the files)."""

    name: str
    tree: dict[str, bytes]
    patches: tuple[bytes, ...]
    after: dict[str, bytes | None] = field(default_factory=dict)
    reason: str = ""
    says: tuple[str, ...] = ()
    result: str = "applied"
    gnu: str = ""  # "applies", "differs" (applies something else), "fails"
    git: str = ""


SHIFTED = b"new\nnew\n" + LINES
TWIN = b"""class A:
    def run(self):
        value = 1
        other = 2
        return value


class B:
    def run(self):
        value = 1
        other = 2
        return value
"""
GONE = TWIN.replace(b"        value = 1\n", b"        value = 9\n", 1)
TWIN_PATCH = edit(
    "f.py",
    b"@@ -2,4 +2,4 @@ class A:\n     def run(self):\n         value = 1\n-        other = 2\n+        other = 3\n         return value\n",
)

ROWS = [
    Row("exact position", {"f": LINES}, (edit("f", change(10)),), {"f": LINES.replace(b"line 10\n", b"changed\n")},
        gnu="applies", git="applies"),
    Row("whole context elsewhere, one candidate", {"f": SHIFTED}, (edit("f", change(10)),),
        {"f": SHIFTED.replace(b"line 10\n", b"changed\n")}, result="offset", gnu="applies", git="applies"),
    Row("intended place gone, a twin elsewhere", {"f.py": GONE}, (TWIN_PATCH,), reason="moved",
        says=("f.py", "hunk 1", "line 9", "'B.run'", "class A:"), gnu="applies", git="applies"),
    Row("two candidates, neither at the recorded line", {"f": b"x\n" * 3 + (b"a\nb\nc\nd\ne\nf\ng\n" + b"x\n" * 4) * 2},
        (edit("f", b"@@ -2,7 +2,7 @@\n a\n b\n c\n-d\n+D\n e\n f\n g\n"),), reason="ambiguous",
        says=("lines 4, 15", "f hunk 1"), gnu="applies", git="applies"),
    Row("context differs", {"f": LINES.replace(b"line 9\n", b"line nine\n")}, (edit("f", change(10)),), reason="context",
        says=("f hunk 1", "- line 9", "+ line nine", "nearest region: line 7"), gnu="fails", git="fails"),
    Row("several files, second fails", {"f": LINES, "g": b"other\n"}, (edit("f", change(10)) + edit("g", change(10)),),
        reason="context", says=("g hunk 1",), gnu="fails", git="fails"),
    Row("second patch of the series fails", {"f": LINES, "g": b"other\n"}, (edit("f", change(10)), edit("g", change(10))),
        reason="context", says=("2.patch", "g hunk 1")),
    Row("first hunk already present", {"f": LINES.replace(b"line 10\n", b"changed\n")},
        (edit("f", change(10) + change(20)),), reason="partly-applied", says=("hunk 1 of 2 is already in the tree",),
        gnu="fails", git="fails"),
    Row("every added block already beside the place",
        {"f": b"x\ny\n" + b"a\nb\nc\n" + b"added line\n" + b"a\nb\nc\nd\ne\n"},
        (edit("f", b"@@ -1,6 +1,7 @@\n a\n b\n c\n+added line\n d\n e\n f\n").replace(b" f\n", b"").replace(b"-1,6 +1,7", b"-2,5 +2,6"),),
        reason="already-there", says=("may already be there",), gnu="applies"),
    Row("fewer trailing than leading context: the end of the file",
        {"f": LINES}, (edit("f", b"@@ -8,4 +8,5 @@\n line 8\n line 9\n line 10\n+x\n line 11\n"),), reason="context",
        says=("the end of the file",), gnu="fails"),
    Row("fewer leading than trailing context, not at the start",
        {"f": LINES}, (edit("f", b"@@ -10,4 +10,5 @@\n line 10\n+x\n line 11\n line 12\n line 13\n"),),
        {"f": LINES.replace(b"line 10\n", b"line 10\nx\n")}, gnu="applies", git="applies"),
    Row("a hunk that starts at line 1 must match there", {"f": b"new\n" + LINES},
        (edit("f", b"@@ -1,4 +1,4 @@\n-line 1\n+first\n line 2\n line 3\n line 4\n"),), reason="context",
        says=("the start of the file", "line 2"), gnu="fails", git="fails"),
    Row("zero context at the recorded line", {"f": LINES}, (edit("f", b"@@ -10 +10 @@\n-line 10\n+changed\n"),),
        {"f": LINES.replace(b"line 10\n", b"changed\n")}, gnu="applies", git="fails"),
    Row("zero context at another line", {"f": SHIFTED}, (edit("f", b"@@ -10 +10 @@\n-line 10\n+changed\n"),),
        reason="context", says=("no context",), gnu="applies", git="fails"),
    Row("zero context pure insertion at its line", {"f": LINES}, (edit("f", b"@@ -10,0 +11 @@\n+changed\n"),),
        reason="context", says=("no context and removes nothing",), gnu="applies", git="differs"),
    Row("insertion into an empty range of a file that is not empty", {"f": LINES}, (edit("f", b"@@ -0,0 +1 @@\n+x\n"),),
        reason="context", says=("f hunk 1",), gnu="applies", git="fails"),
    Row("new file that exists", {"f": LINES}, (b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",), reason="exists",
        says=("f exists already",), gnu="fails", git="fails"),
    Row("new file that exists with equal bytes", {"f": b"x\n"}, (b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",),
        result="already"),
    Row("new file that exists and is empty", {"f": b""}, (b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",),
        reason="exists", says=("f exists already",), gnu="applies", git="fails"),
    Row("new file", {"g": b""}, (b"--- /dev/null\n+++ b/d/f\n@@ -0,0 +1 @@\n+x\n",), {"d/f": b"x\n"}, gnu="applies", git="applies"),
    Row("new empty file", {"g": b"1\n"}, (b"diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n",),
        {"e": b""}, git="applies"),
    Row("deletion", {"d/f": b"x\n"}, (b"--- a/d/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",), {"d/f": None}, gnu="applies", git="applies"),
    Row("deletion, content differs", {"f": b"x\ny\n"}, (b"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",), reason="context",
        says=("more content than the deletion removes",), gnu="fails", git="fails"),
    Row("declared count too small, an extra added line", {"f": LINES},
        (edit("f", change(10).replace(b" line 13\n", b" line 13\n+dropped\n")),), reason="malformed",
        says=("after the end of its hunk", "recount"), gnu="applies", git="applies"),
    Row("declared count too large", {"f": LINES}, (edit("f", change(10).replace(b",7 +", b",8 +")),), reason="malformed",
        says=("promises", "recount"), gnu="fails", git="fails"),
    Row("hunks overlap", {"f": LINES}, (edit("f", change(10) + change(12)),), reason="malformed",
        says=("ordered and disjoint",), git="fails"),
    Row("hunks out of order", {"f": LINES}, (edit("f", change(20) + change(10)),), reason="malformed",
        says=("ordered and disjoint",), gnu="fails", git="applies"),
    Row("file has no final newline, patch has", {"f": b"a\nb"}, (edit("f", b"@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),),
        reason="context", says=("newline at the end of the file",), gnu="fails", git="fails"),
    Row("patch has no final newline, file has", {"f": b"a\nb\n"},
        (edit("f", b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"),), reason="context",
        says=("newline at the end of the file",), gnu="fails", git="fails"),
    Row("no final newline on either side", {"f": b"a\nb"},
        (edit("f", b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"),),
        {"f": b"a\nc"}, gnu="applies", git="applies"),
    Row("final newline added", {"f": b"a\nb"}, (edit("f", b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"),),
        {"f": b"a\nb\n"}, gnu="applies", git="applies"),
    Row("CRLF file, LF patch", {"f": LINES.replace(b"\n", b"\r\n")}, (edit("f", change(10)),), reason="context",
        says=("CRLF", "nothing is converted"), gnu="fails", git="fails"),
    Row("LF file, CRLF content in the patch", {"f": LINES},
        (edit("f", change(10).replace(b"\n", b"\r\n").replace(b" @@\r\n", b" @@\n")),), reason="context",
        says=("CRLF", "nothing is converted"), git="fails"),
    Row("CRLF patch file", {"f": LINES}, (edit("f", change(10)).replace(b"\n", b"\r\n"),), reason="crlf",
        says=("CRLF",), gnu="differs", git="fails"),
    Row("CRLF file, CRLF content", {"f": LINES.replace(b"\n", b"\r\n")},
        (edit("f", change(10).replace(b"\n", b"\r\n").replace(b" @@\r\n", b" @@\n")),),
        {"f": LINES.replace(b"\n", b"\r\n").replace(b"line 10\r", b"changed\r")}, git="applies"),
    Row("empty context line whose blank an editor stripped", {"f": b"a\n\nb\nc\n"},
        (edit("f", b"@@ -1,4 +1,4 @@\n a\n\n-b\n+B\n c\n"),), {"f": b"a\n\nB\nc\n"}, gnu="applies", git="applies"),
    Row("latin-1, form feed, lone CR and U+2028 in lines", {"f": b"caf\xe9\na\x0cb\nc\rd\n\xe2\x80\xa8e\n"},
        (edit("f", b"@@ -1,4 +1,4 @@\n caf\xe9\n-a\x0cb\n+a\x0cB\n c\rd\n \xe2\x80\xa8e\n"),),
        {"f": b"caf\xe9\na\x0cB\nc\rd\n\xe2\x80\xa8e\n"}, git="applies"),
    Row("unquoted blanks and a time stamp after a tab", {"a b": b"x\n"},
        (b"--- a/a b\t2026-01-01 10:00:00.000000000 +0100\n+++ b/a b\t2026-01-01 10:00:00.000000000 +0100\n@@ -1 +1 @@\n-x\n+y\n",),
        {"a b": b"y\n"}, gnu="applies", git=""),
    Row("C-quoted octal name", {"é\t": b"x\n"}, (b'--- "a/\\303\\251\\t"\n+++ "b/\\303\\251\\t"\n@@ -1 +1 @@\n-x\n+y\n',),
        reason="path", says=("control character",)),
    Row("C-quoted octal name without control characters", {"é": b"x\n"},
        (b'--- "a/\\303\\251"\n+++ "b/\\303\\251"\n@@ -1 +1 @@\n-x\n+y\n',), {"é": b"y\n"}, git="applies"),
    Row("a name that is not UTF-8", {"f": b"x\n"}, (b'--- "a/\\377"\n+++ "b/\\377"\n@@ -1 +1 @@\n-x\n+y\n',), reason="path",
        says=("not UTF-8",)),
    Row("diff -N: the epoch means new", {"g": b""},
        (b"diff -ruN a/f b/f\n--- a/f\t1970-01-01 00:00:00.000000000 +0000\n+++ b/f\t2026-01-01 10:00:00 +0000\n@@ -0,0 +1 @@\n+x\n",),
        {"f": b"x\n"}, gnu="applies"),
    Row("diff -N: the epoch means deleted", {"f": b"x\n", "g": b"1\n"},
        (b"--- a/f\t2026-01-01 10:00:00 +0000\n+++ b/f\t1970-01-01 01:00:00.000000000 +0100\n@@ -1 +0,0 @@\n-x\n",),
        {"f": None}, gnu="applies"),
    Row("prose before, signature after", {"f": LINES},
        (b"From x\nSubject: y\n\n--- exported from a tool\n+++ x\n@@ what @@\n\n" + edit("f", change(10)) + b"-- \n2.39.5\n\n",),
        {"f": LINES.replace(b"line 10\n", b"changed\n")}, gnu="applies", git="applies"),
    Row("prose after a hunk", {"f": LINES}, (edit("f", change(10)) + b"the end\n",), reason="malformed",
        says=("text after a hunk", "prose belongs before"), gnu="applies", git="applies"),
    Row("context diff", {"f": LINES}, (b"*** a/f\n--- b/f\n***************\n*** 1 ****\n! line 1\n--- 1 ----\n! x\n",),
        reason="malformed", says=("context diff", "unified diffs only"), git="fails"),
    Row("ed script", {"f": LINES}, (b"1c\nx\n.\n",), reason="empty", says=("no unified diff",), git="fails"),
    Row("combined diff", {"f": LINES},
        (b"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,1 -1,1 +1,1 @@@\n- line 1\n -line 1\n++x\n",), reason="malformed",
        says=("combined diff", "unified diffs only"), git="fails"),
    Row("git binary patch", {"f": LINES},
        (b"diff --git a/f b/f\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n",),
        reason="binary", says=("binary",)),
    Row("binary files differ", {"f": LINES}, (b"diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n",),
        reason="malformed"),
    Row("binary files differ, full ids", {"f": LINES},
        (b"diff --git a/f b/f\nindex 1111111..2222222 100644\nBinary files a/f and b/f differ\n",), reason="binary",
        says=("binary",), git="fails"),
    Row("names of the git line and of the file header disagree", {"f": LINES, "g": LINES},
        (b"diff --git a/f b/f\n--- a/g\n+++ b/g\n" + change(10),), reason="malformed", says=("disagree", "a/g"), git="applies"),
    Row("names of the two sides disagree", {"f": LINES, "g": LINES}, (b"--- a/f\n+++ b/g\n" + change(10),),
        reason="malformed", says=("disagree", "'a/f'", "'b/g'"), git="applies"),
    Row("rename lines disagree with the git line", {"f": LINES},
        (b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to h\n",), reason="malformed", says=("disagree",),
        git="applies"),
    Row("empty patch file", {"f": LINES}, (b"",), reason="empty", says=("no unified diff",), gnu="applies", git="fails"),
    Row("a header without hunks", {"f": LINES}, (HEAD,), reason="malformed", says=("file header without hunks",), git="fails"),
    Row("same file in several patches", {"f": LINES}, (edit("f", change(10)), edit("f", change(20))),
        {"f": LINES.replace(b"line 10\n", b"changed\n").replace(b"line 20\n", b"changed\n")}),
    Row("one path in two sections, in order", {"f": LINES}, (edit("f", change(10)) + edit("f", change(20)),),
        {"f": LINES.replace(b"line 10\n", b"changed\n").replace(b"line 20\n", b"changed\n")}, gnu="applies", git="applies"),
    Row("a file that is not there", {"g": LINES}, (edit("f", change(10)),), reason="missing", says=("f does not exist",),
        gnu="fails", git="fails"),
    Row("a hunk that changes nothing", {"f": LINES}, (edit("f", b"@@ -1,2 +1,2 @@\n-line 1\n line 2\n+line 1\n")
        .replace(b" line 2\n", b"-line 2\n").replace(b"+line 1\n", b"+line 1\n+line 2\n"),), reason="malformed",
        says=("changes nothing",)),
    Row("rename with an edit", {"f": LINES},
        (b"diff --git a/f b/d/g\nsimilarity index 90%\nrename from f\nrename to d/g\n--- a/f\n+++ b/d/g\n" + change(10),),
        {"f": None, "d/g": LINES.replace(b"line 10\n", b"changed\n")}, gnu="applies", git="applies"),
    Row("rename onto a file that exists", {"f": LINES, "g": b"x\n"},
        (b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n",), reason="exists", says=("g exists",),
        git="fails"),
    Row("a copy reads the original", {"f": LINES},
        (b"diff --git a/f b/f\n--- a/f\n+++ b/f\n" + change(10)
         + b"diff --git a/f b/g\nsimilarity index 90%\ncopy from f\ncopy to g\n--- a/f\n+++ b/g\n" + change(20),),
        {"f": LINES.replace(b"line 10\n", b"changed\n"), "g": LINES.replace(b"line 20\n", b"changed\n")}, git="applies"),
    Row("two renames that swap", {"f": b"1\n", "g": b"2\n"},
        (b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"
         b"diff --git a/g b/f\nsimilarity index 100%\nrename from g\nrename to f\n",), {"f": b"2\n", "g": b"1\n"}, git="applies"),
]  # fmt: skip


def put(bench: Bench, tree: dict[str, bytes]) -> None:
    for path, data in tree.items():
        bench.put(path, data)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row(bench: Bench, row: Row) -> None:
    put(bench, row.tree)
    before = snapshot(bench.tree)
    done = bench.apply(*row.patches)
    if row.reason:
        reason, text = failure_text(done)
        assert reason == row.reason, text
        for words in row.says:
            assert words in text
        assert ".patch" in text, "the message names the patch"
        assert snapshot(bench.tree) == before
        return
    assert isinstance(done, Applied), str(done)
    assert done.status == 0, failure_text(done)
    assert done.results[0].result == row.result
    for path, data in row.after.items():
        target = bench.tree / path
        assert (target.read_bytes() if target.exists() else None) == data
    untouched = {p: d for p, d in row.tree.items() if p not in row.after}
    for path, data in untouched.items():
        assert (bench.tree / path).read_bytes() == data


def others(tree: Path, tool: str, patch: bytes) -> tuple[int, dict[str, bytes]]:
    """What GNU patch or git make of it, in a copy of the tree."""
    copy = tree.parent / tool
    shutil.copytree(tree, copy)
    command = (
        ["patch", "-p1", "-N", "--fuzz=0", "-s", "--no-backup-if-mismatch"]
        if tool == "patch"
        else ["git", "apply", "-"]
    )
    done = subprocess.run(command, input=patch, cwd=copy, capture_output=True, check=False)
    files = {p.relative_to(copy).as_posix(): p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    return done.returncode, {k: v for k, v in files.items() if not k.endswith((".rej", ".orig"))}


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs GNU patch")
@pytest.mark.parametrize("row", [r for r in ROWS if r.gnu], ids=[r.name for r in ROWS if r.gnu])
def test_what_gnu_patch_does(bench: Bench, row: Row) -> None:
    put(bench, row.tree)
    status, files = others(bench.tree, "patch", row.patches[0])
    if row.gnu == "fails":
        assert status != 0
        return
    assert status == 0
    if not row.reason and row.gnu == "applies":
        assert files == expected(row)


@pytest.mark.parametrize("row", [r for r in ROWS if r.git], ids=[r.name for r in ROWS if r.git])
def test_what_git_does(bench: Bench, row: Row) -> None:
    put(bench, row.tree)
    status, files = others(bench.tree, "git", row.patches[0])
    if row.git == "fails":
        assert status != 0
        return
    assert status == 0
    if not row.reason:
        assert files == expected(row)


def expected(row: Row) -> dict[str, bytes]:
    """The files after the row."""
    merged = {**row.tree, **row.after}
    return {path: data for path, data in merged.items() if data is not None}


def test_gitattributes_in_the_tree_change_nothing(bench: Bench) -> None:
    """git apply rewrites a file that an attribute converts; here bytes are bytes."""
    bench.put(".gitattributes", b"* ident text eol=crlf\n")
    bench.put("f", LINES.replace(b"line 5\n", b"$Id: x $\n"))
    done = bench.apply(edit("f", change(10)))
    assert isinstance(done, Applied)
    assert (bench.tree / "f").read_bytes() == LINES.replace(b"line 5\n", b"$Id: x $\n").replace(
        b"line 10\n", b"changed\n"
    )


def test_an_ignored_directory_of_a_repository_is_a_tree_like_any_other(bench: Bench) -> None:
    subprocess.run(["git", "-c", "init.defaultBranch=x", "init", "-q", str(bench.root)], check=True)
    (bench.root / ".gitignore").write_text("tree/\n")
    bench.put("f", LINES)
    assert isinstance(bench.apply(edit("f", change(10))), Applied)
    assert (bench.tree / "f").read_bytes() == LINES.replace(b"line 10\n", b"changed\n")


def test_a_mode_change_is_made_once(bench: Bench) -> None:
    bench.put("f", LINES, 0o755)
    patch = b"diff --git a/f b/f\nold mode 100755\nnew mode 100644\n"
    for outcome in ("applied", "already"):
        done = bench.apply(patch)
        assert isinstance(done, Applied)
        assert done.outcome == outcome
        assert (bench.tree / "f").stat().st_mode & 0o777 == 0o644


def test_the_old_mode_on_the_index_line_is_checked_too(bench: Bench) -> None:
    bench.put("f", b"x\n", 0o755)
    head = b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\nindex 1111111..2222222\n--- a/f\n+++ b/f\n"
    reason, text = failure_text(bench.apply(head + b"@@ -1 +1 @@\n-x\n+y\n"))
    assert reason == "mode"
    assert "f is executable" in text
