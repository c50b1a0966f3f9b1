"""The state file is gone, the series is not: every command says the same, and the tree can be had back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from demo import Demo

from installed import FIRST, Place


@pytest.fixture
def applied(demo: Demo) -> Demo:
    assert demo.run("lock").status == 0
    assert demo.run("apply").status == 0
    return demo


def test_all_commands_agree(applied: Demo) -> None:
    shutil.rmtree(applied.site / "demo-1.0.dist-info/patchforge")
    before = applied.snapshot()
    assert applied.run("verify").status == 0
    again = applied.run("apply")
    assert again.status == 0, again.err
    assert "already applied: 2 patches" in again.out
    assert "no state file says who put them there" in again.err
    assert applied.snapshot() == before
    for words in (["revert", "--dry-run"], ["revert"]):
        done = applied.run(*words)
        assert done.status == 0, done.err
        assert "the lock proves the outcome" in done.err
    status = applied.run("status", "--format", "json")
    assert status.json["result"] == "pristine"
    assert "problems" not in status.json
    assert applied.run("verify", "--full").status == 1
    assert applied.run("revert").out.startswith("nothing to revert")
    assert applied.run("apply").status == 0
    assert applied.run("verify", "--full").status == 0


def test_the_whole_tree_comes_back(tmp_path: Path) -> None:
    """Renames, modes, new and removed files; RECORD says of every file what it is."""
    place = Place(tmp_path)
    place.install(bytecode=False)
    before = place.look()
    rows = sorted((place.site / "demo-1.0.dist-info/RECORD").read_text().splitlines())
    from patchforge import resources
    from patchforge.engine.locking import compute_lock
    from patchforge.engine.unrecorded import as_locked, revert_locked
    from patchforge.series.lock import dump_lock
    from patchforge.series.parsed import Schema
    from patchforge.series.project import find_project, load_series
    from patchforge.tree.locate import in_directory
    from patchforge.tree.target import open_installed

    series = place.series(FIRST)
    installed = in_directory(place.site, ["demo"], "demo")
    assert installed is not None
    with open_installed(installed, "demo", False) as target:
        lock, _, _ = compute_lock(series, target, Schema(resources.schema_hash(), resources.schema))
        assert lock is not None
        assert not as_locked(lock, target)
    (place.project / "series/demo-1.0/lock.toml").write_bytes(dump_lock(lock))
    assert place.apply_as_it_is().status == 0
    shutil.rmtree(place.site / "demo-1.0.dist-info/patchforge")
    series = load_series(find_project(place.project), None)
    with open_installed(installed, "demo", True) as target:
        assert as_locked(lock, target)
        assert revert_locked(series, target, False).outcome == "reverted"
    after = place.look()
    record = "demo-1.0.dist-info/RECORD"
    assert sorted(after.pop(record)[2].decode().splitlines()) == rows
    before.pop(record)
    assert {path: entry for path, entry in after.items() if entry[0] == "file"} == {
        path: entry for path, entry in before.items() if entry[0] == "file"
    }


def test_upto_just_before_a_change_of_mode(demo: Demo) -> None:
    """The bytes are those of the end, the mode is not: that is where --upto stopped, not an alteration."""
    head = demo.patches.joinpath("log.patch").read_bytes().partition(b"diff --git")[0]
    mode = head + b"diff --git a/core.py b/core.py\nold mode 100644\nnew mode 100755\n"
    only = head + b"diff --git a/data/text.txt b/data/text.txt\nold mode 100644\nnew mode 100755\n"
    log = demo.patches.joinpath("log.patch").read_bytes()
    demo.write_patches(log=log, mode=mode, only=only)
    assert demo.run("lock").status == 0
    for upto, words in (("log", ["applied", "pristine", "pristine"]), ("mode", ["applied", "applied", "pristine"])):
        assert demo.run("apply", "--upto", upto).status == 0
        found = demo.run("status", "--format", "json").json
        assert [p["result"] for p in found["patches"]] == words
        assert found["result"] == "partly"
        assert "problems" not in found
    assert demo.run("apply").status == 0
    assert demo.run("verify").status == 0
    (demo.site / "demo/core.py").chmod(0o644)
    assert demo.run("verify").status == 1
    (demo.site / "demo/core.py").write_bytes(b"x = 1\n")
    assert demo.run("status", "--format", "json").json["result"] == "altered"
