"""Errors that once named the wrong thing, or the wrong way out."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest
from demo import LOG, NAMES, Demo

from patchforge import cli


def test_a_patch_file_with_crlf_line_ends_says_so(demo: Demo) -> None:
    head, _, diff = LOG.partition(b"diff --git")
    whole = head + b"diff --git" + diff.replace(b"\n---", b"\nindex 1234567..89abcde 100644\n---", 1)
    demo.write_patches(log=head + whole[len(head) :].replace(b"\n", b"\r\n"))
    done = demo.run("lint", tree=False)
    assert done.status == 2
    assert "the patch file has CRLF line ends" in done.err
    assert "malformed 'index' line" not in done.err


def test_a_compressed_patch_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/a.patch.gz").write_bytes(gzip.compress(NAMES))
    (tmp_path / "p/series").write_text("a.patch.gz\n")
    assert cli.run(["apply", "--quilt", str(tmp_path / "p"), "--tree", str(tmp_path)]) == 2
    assert "the file is compressed" in capsys.readouterr().err


def test_a_series_file_may_start_with_a_byte_order_mark(demo: Demo) -> None:
    (demo.series / "series").write_bytes(b"\xef\xbb\xbf# the demo\nlog.patch\nnames.patch\n")
    assert demo.run("lock").status == 0


def test_a_missing_patch_of_a_bare_series_is_looked_for_where_it_should_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/series").write_text("a.patch\n")
    assert cli.run(["lint", "--quilt", str(tmp_path / "p")]) == 2
    assert f"no such file in {tmp_path / 'p'}" in capsys.readouterr().err


def test_what_is_no_interpreter(demo: Demo) -> None:
    done = demo.run("status", "--python", "/bin/true", tree=False)
    assert done.status == 2
    assert "it prints no list of directories" in done.err
    assert "index out of range" not in done.err
    assert Path(sys.executable).exists()


def test_a_value_that_is_too_short_says_how_long_it_must_be(demo: Demo) -> None:
    demo.write_patches(log=LOG.replace(b"What: the engine counts its starts", b"What: does it"))
    done = demo.run("lint", tree=False)
    assert "What: 'does it' is too short: at least 8 characters" in done.err


@pytest.mark.parametrize("command", ["apply", "status", "verify", "revert"])
def test_a_directory_with_nothing_of_the_release_is_another_one(demo: Demo, tmp_path: Path, command: str) -> None:
    demo.run("lock")
    for place, hint in ((tmp_path / "empty", "name the package's own directory"), (tmp_path, "")):
        place.mkdir(exist_ok=True)
        done = demo.run(command, "--tree", str(place), tree=False)
        assert done.status == 2
        assert f"there is no demo in {place}: it has none of the 2 files the series changes" in done.err
        assert hint in done.err
    (tmp_path / "level/demo").mkdir(parents=True)
    done = demo.run(command, "--tree", str(tmp_path / "level"), tree=False)
    assert f"did you mean {tmp_path / 'level/demo'}?" in done.err


def test_a_damaged_state_is_named(demo: Demo) -> None:
    demo.run("lock")
    assert demo.run("apply").status == 0
    (demo.site / "demo-1.0.dist-info/patchforge/state.json").write_bytes(b"{")
    done = demo.run("revert")
    assert done.status == 1
    assert "error: demo-1.0.dist-info/patchforge/state.json: the state file is damaged" in done.err


def test_export_writes_over_nothing_but_mailboxes(demo: Demo, tmp_path: Path) -> None:
    precious = tmp_path / "lock.toml"
    precious.write_bytes(b"precious\n")
    done = demo.run("export", "--mbox", str(precious), tree=False)
    assert done.status == 2
    assert precious.read_bytes() == b"precious\n"
    for _ in range(2):
        assert demo.run("export", "--mbox", str(tmp_path / "box"), tree=False).status == 0
    assert demo.run("export", "--prefix", "../..", "--mbox", str(tmp_path / "box"), tree=False).status == 2
    assert demo.run("export", "--prefix", "src/demo/", "--mbox", str(tmp_path / "box"), tree=False).status == 0
    assert b"diff --git a/src/demo/core.py b/src/demo/core.py\n" in (tmp_path / "box").read_bytes()


def test_an_import_that_is_not_listed_says_how_to_go_on(demo: Demo, tmp_path: Path) -> None:
    demo.run("lock")
    demo.run("table", tree=False)
    file = tmp_path / "x.diff"
    file.write_bytes(
        b"--- a/demo/new.py\n+++ b/demo/new.py\n".replace(b"a/demo/new.py", b"/dev/null") + b"@@ -0,0 +1 @@\n+x = 1\n"
    )
    done = demo.run("import", str(file))
    assert "put its name into the series, or remove the file and import it again" in done.out
    again = demo.run("import", str(file))
    assert again.status == 2
    assert "remove it, or choose another with --name" in again.err
