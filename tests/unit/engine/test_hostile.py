"""Hostile input: every path that is never written, and the history of attacks on patch programs.

Each must be refused, or be harmless, with nothing written outside the tree, nothing changed inside it, and no program started.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchforge.engine.apply import Applied
from patchforge.errors import TreeError
from trees import Bench, failure_text, snapshot


@pytest.fixture(autouse=True)
def no_program_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **_: object) -> None:
        raise AssertionError(f"a program was started: {arguments}")

    for name in ("Popen", "run", "call", "check_output"):
        monkeypatch.setattr(subprocess, name, refuse)
    for name in ("system", "popen", "execv", "execve", "posix_spawn", "fork"):
        monkeypatch.setattr(os, name, refuse)


def new_file(path: str) -> bytes:
    return b"--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n" % path.encode()


def git_new_file(path: str, mode: str = "100644") -> bytes:
    p = path.encode()
    return (
        b"diff --git a/%s b/%s\nnew file mode %s\nindex 0000000..1111111\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n"
        % (p, p, mode.encode(), p)
    )


def refused(bench: Bench, *patches: bytes, reason: str | None = "path", strip: int = 1) -> str:
    """Apply, check that it was refused and that nothing anywhere changed, and return what was said."""
    before = snapshot(bench.root)
    bench.patches.mkdir(exist_ok=True)
    try:
        done = bench.apply(*patches, strip=strip)
        if isinstance(done, Applied):
            assert done.status != 0, "it was applied"
        found, text = failure_text(done)
    except TreeError as error:
        found, text = error.reason, str(error)
    after = {k: v for k, v in snapshot(bench.root).items() if not k.startswith("patches")}
    assert after == {k: v for k, v in before.items() if not k.startswith("patches")}
    if reason is not None:
        assert found == reason, text
    return text


PATHS = [
    ("/etc/passwd", 1),
    ("../outside", 1),
    ("d/../../outside", 1),
    ("d/../f", 1),
    ("./f", 1),
    ("d//f", 1),
    ("d/", 1),
    ("C:/f", 1),
    ("c:f", 1),
    ("d\\f", 1),
    ("..\\outside", 1),
    (".git/hooks/post-checkout", 1),
    (".GIT/config", 1),
    ("d/.git/config", 1),
    (".git./config", 1),
    (".git /config", 1),
    (".git::$INDEX_ALLOCATION/config", 1),
    ("git~1/config", 1),
    (".g\u200cit/config", 1),
    ("demo-1.0.dist-info/RECORD", 1),
    ("x.egg-info/PKG-INFO", 1),
    ("__pycache__/f.cpython-311.pyc", 1),
    ("d/__pycache__/f.py", 1),
    ("f.orig", 1),
    ("f.rej", 1),
    ("f.pyc", 1),
    ("f.so", 1),
    (".patchforge-commit", 1),
    (".f.patchforge-tmp", 1),
]


@pytest.mark.parametrize(("path", "strip"), PATHS, ids=[p for p, _ in PATHS])
@pytest.mark.parametrize("make", [new_file, git_new_file])
def test_paths_that_are_never_written(bench: Bench, path: str, strip: int, make: object) -> None:
    bench.put("f", b"x\n")
    bench.put("d/g", b"x\n")
    text = refused(bench, make(path), reason=None, strip=strip)  # type: ignore[operator]
    assert "path" in text or "name" in text


def test_paths_too_deep_or_too_long_for_a_tree(bench: Bench) -> None:
    assert "too deep" in refused(bench, new_file("/".join(["d"] * 200)))
    assert "too long" in refused(bench, new_file("/".join(["d" * 200] * 30)))


@pytest.mark.parametrize("strip", [0, 1, 2])
def test_absolute_names_are_refused_at_every_strip_level(bench: Bench, strip: int) -> None:
    refused(bench, b"--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-x\n+y\n", strip=strip)


@pytest.mark.parametrize("name", [b'"b/a\\000b"', b'"b/a\\nb"', b'"b/\\377"'])
def test_names_with_control_characters_or_no_utf8(bench: Bench, name: bytes) -> None:
    refused(bench, b"--- /dev/null\n+++ " + name + b"\n@@ -0,0 +1 @@\n+x\n")


@pytest.mark.parametrize("mode", ["120000", "160000", "040000", "100600", "104755"])
def test_modes_that_are_never_made(bench: Bench, mode: str) -> None:
    text = refused(bench, git_new_file("f", mode), reason=None)
    assert "mode" in text


def test_a_symbolic_link_on_the_way(bench: Bench) -> None:
    outside = bench.root / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"x\n")
    (bench.tree / "d").symlink_to(outside)
    text = refused(bench, b"--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-x\n+y\n")
    assert "symbolic link" in text
    refused(bench, new_file("d/new"))


def test_a_symbolic_link_as_the_file(bench: Bench) -> None:
    (bench.root / "outside").write_bytes(b"x\n")
    (bench.tree / "f").symlink_to(bench.root / "outside")
    assert "symbolic link" in refused(bench, b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n")


def test_a_dangling_link_where_a_new_file_goes(bench: Bench) -> None:
    (bench.tree / "f").symlink_to(bench.root / "outside")
    refused(bench, new_file("f"))


@pytest.mark.parametrize("kind", ["directory", "fifo", "socket"])
def test_targets_that_are_not_regular_files(bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.tree / "f"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as made:
            monkeypatch.chdir(bench.tree)
            made.bind("f")
    refused(bench, b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", reason=None)


def test_a_file_where_a_directory_is_needed(bench: Bench) -> None:
    bench.put("d", b"x\n")
    refused(bench, new_file("d/f"), reason=None)


# GNU patch, by CVE.


def test_cve_2010_4651_dot_dot_in_names(bench: Bench) -> None:
    refused(bench, b"--- a/../outside\n+++ b/../outside\n@@ -0,0 +1 @@\n+x\n")


def test_cve_2014_9637_huge_line_numbers_and_counts(bench: Bench) -> None:
    bench.put("f", b"x\n")
    huge = b"9" * 30
    refused(bench, b"--- a/f\n+++ b/f\n@@ -%s,1 +%s,1 @@\n-x\n+y\n" % (huge, huge), reason=None)
    refused(bench, b"--- a/f\n+++ b/f\n@@ -1,%s +1,%s @@\n-x\n+y\n" % (huge, huge), reason=None)


def test_cve_2015_1196_a_symbolic_link_made_by_the_patch_itself(bench: Bench) -> None:
    link = (
        b"diff --git a/d b/d\nnew file mode 120000\nindex 0000000..1111111\n--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n"
        b"+../outside\n\\ No newline at end of file\n"
    )
    (bench.root / "outside").mkdir()
    text = refused(bench, link + git_new_file("d/f"))
    assert "symbolic link" in text


def test_cve_2015_1395_rename_to_a_path_outside(bench: Bench) -> None:
    bench.put("f", b"x\n")
    refused(bench, b"diff --git a/f b/../outside\nsimilarity index 100%\nrename from f\nrename to ../outside\n")
    refused(bench, b"diff --git a/f b/f\nsimilarity index 100%\ncopy from ../../etc/passwd\ncopy to f\n", reason=None)


def test_cve_2015_1396_a_directory_that_becomes_a_link_between_patches(bench: Bench) -> None:
    bench.put("d/f", b"x\n")
    delete = b"--- a/d/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    link = b"diff --git a/d b/d\nnew file mode 120000\n--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+../outside\n"
    refused(bench, delete, link, git_new_file("d/f"))


def test_cve_2016_10713_a_truncated_normal_diff(bench: Bench) -> None:
    bench.put("f", b"x\n")
    refused(bench, b"Index: f\n1a1,2147483647\n> x\n", reason="empty")


def test_cve_2018_6951_a_mangled_rename_without_names(bench: Bench) -> None:
    bench.put("f", b"x\n")
    refused(bench, b"diff --git\nrename from\nrename to\n", reason=None)
    refused(bench, b"diff --git a/f b/f\nrename from f\n", reason="malformed")


def test_cve_2018_6952_a_swap_with_mismatched_hunks(bench: Bench) -> None:
    bench.put("f", b"x\n")
    refused(bench, b"--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n-x\n-x\n+y\n@@ -1 +1 @@\n-x\n+y\n", reason="malformed")


@pytest.mark.parametrize(
    "script",
    [
        b"--- a/f\n+++ b/f\n1c\n!id > pwned\n.\n",
        b"1337a\nr !echo PWNED\n.\nw\n",
        b"diff --git a/f b/f\n1e echo pwned >&2\n",
        b"Index: f\n0a\nx\n.\n!touch pwned\n",
    ],
)
def test_cve_2018_1000156_cve_2018_20969_cve_2019_13638_ed_scripts(bench: Bench, script: bytes) -> None:
    bench.put("f", b"x\n")
    refused(bench, script, reason=None)


def test_cve_2018_20969_a_file_name_that_looks_like_a_command(bench: Bench) -> None:
    done = bench.apply(new_file("!id > pwned; $(touch x) `touch y`"))
    assert isinstance(done, Applied)
    assert [k for k in snapshot(bench.tree)] == ["!id > pwned; $(touch x) `touch y`"]


def test_cve_2019_13636_a_link_put_where_the_input_or_output_goes(bench: Bench) -> None:
    outside = bench.root / "outside"
    outside.write_bytes(b"x\n")
    bench.put("f", b"x\n")
    (bench.tree / ".f.patchforge-tmp").symlink_to(outside)
    done = bench.apply(b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n")
    assert isinstance(done, Applied)
    assert done.status == 0
    assert outside.read_bytes() == b"x\n"
    assert (bench.tree / "f").read_bytes() == b"y\n"


def test_git_cve_2023_23946_a_link_and_a_write_beyond_it_in_one_patch(bench: Bench) -> None:
    (bench.root / "outside").mkdir()
    (bench.tree / "link").symlink_to(bench.root / "outside")
    rename = b"diff --git a/link b/other\nsimilarity index 100%\nrename from link\nrename to other\n"
    refused(bench, rename + git_new_file("other/f"), reason=None)


def test_git_cve_2023_25652_no_reject_files_are_written(bench: Bench) -> None:
    bench.put("f", b"z\n")
    (bench.root / "outside").write_bytes(b"1\n")
    (bench.tree / "f.rej").symlink_to(bench.root / "outside")
    refused(bench, b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", reason="context")


def test_dpkg_cve_2014_3227_names_quoted_to_hide_a_path(bench: Bench) -> None:
    refused(bench, b'--- "a/\\056\\056/outside"\n+++ "b/\\056\\056/outside"\n@@ -0,0 +1 @@\n+x\n')
    refused(bench, b'--- /dev/null\n+++ "b/\\056\\056/outside"\n@@ -0,0 +1 @@\n+x\n')


def test_a_series_file_cannot_name_patches_elsewhere(bench: Bench) -> None:
    (bench.root / "evil.patch").write_bytes(new_file("f"))
    bench.patches.mkdir()
    for line in ("../evil.patch", str(bench.root / "evil.patch"), "a\\..\\evil.patch"):
        (bench.patches / "series").write_text(line + "\n")
        done = bench.apply()
        assert not isinstance(done, Applied)
        assert done.reason == "path"


def test_the_tree_itself_may_be_reached_through_a_link(bench: Bench, tmp_path: Path) -> None:
    bench.put("f", b"x\n")
    real = bench.tree.rename(tmp_path / "real")
    (tmp_path / "tree").symlink_to(real)
    done = bench.apply(b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n")
    assert isinstance(done, Applied)
    assert (real / "f").read_bytes() == b"y\n"


def test_a_rename_to_nothing(bench: Bench) -> None:
    bench.put("f", b"x\n")
    for lines in (b"rename from f\nrename to \n", b"rename from \nrename to f\n", b"copy from \ncopy to \n"):
        refused(bench, b"diff --git a/f b/\nsimilarity index 100%\n" + lines, reason=None)
