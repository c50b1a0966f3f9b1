"""What --fetch got once need not be asked for again: the tree under build/, and for what needs the release, the cached wheel."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from demo import CORE, TEXT, Demo

from wheels import build_wheel


@pytest.fixture
def cached(demo: Demo, tmp_path: Path) -> Demo:
    """The demo's wheel in the cache, as --fetch leaves it, and no demo in the environment."""
    files = {"demo/__init__.py": b"", "demo/core.py": CORE, "demo/data/text.txt": TEXT}
    wheel = build_wheel(tmp_path / "wheels", {path: (data, 0o644) for path, data in files.items()})
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    folder = tmp_path / "cache/patchforge/wheels" / digest
    folder.mkdir(parents=True)
    shutil.copy(wheel, folder)
    pin = demo.series / "pin.toml"
    pin.write_text(pin.read_text().replace("0" * 64, digest))
    return demo


def test_a_tree_that_was_fetched_is_remembered(cached: Demo) -> None:
    assert cached.run("lock", "--fetch", tree=False).status == 0
    assert cached.run("apply", "--fetch", tree=False).status == 0
    for command in ("verify", "status", "apply", "revert", "apply"):
        done = cached.run(command, tree=False)
        assert done.status == 0, (command, done.err)
        assert "note: demo is not installed here; this is about" in done.err
        assert "build/demo-1.0, as --fetch made it" in done.err
    assert b"self.starts = 1" in (cached.root / "build/demo-1.0/demo/core.py").read_bytes()
    assert cached.run("verify", "-q", tree=False).err == ""


def test_a_tree_made_from_another_wheel_than_the_pin_names(cached: Demo) -> None:
    assert cached.run("lock", "--fetch", tree=False).status == 0
    pin = cached.series / "pin.toml"
    right = pin.read_text()
    digest = right.partition('sha256 = "')[2][:64]
    pin.write_text(right.replace(digest, "f" * 64))
    for words in (["apply", "--fetch"], ["lock", "--check", "--fetch"], ["lock", "--check"], ["status"]):
        done = cached.run(*words, tree=False)
        assert done.status == 1, words
        assert f"build/demo-1.0 was unpacked from another wheel (sha256 {digest[:12]}…) than the pin names" in done.err
        assert "mend pin.toml, or delete" in done.err
    pin.write_text(right)
    assert cached.run("lock", "--check", tree=False).status == 0


def test_a_pin_without_a_hash_is_noticed_although_there_is_a_tree(cached: Demo) -> None:
    assert cached.run("lock", "--fetch", tree=False).status == 0
    assert cached.run("lint", "--strict", tree=False).status == 0
    pin = cached.series / "pin.toml"
    head, _, _ = pin.read_text().partition("wheel = ")
    pin.write_text(f"{head}wheel = []\n")
    lint = cached.run("lint", "--strict", tree=False)
    assert lint.status == 1
    assert "series/demo-1.0/pin.toml: [flavor.default] names no wheel" in lint.err
    done = cached.run("apply", "--fetch", tree=False)
    assert done.status == 2
    assert "the pin's flavor 'default' lists no wheel" in done.err


def test_a_cached_wheel_is_the_release(cached: Demo, tmp_path: Path) -> None:
    for words in (
        ["lock"],
        ["graph"],
        ["checkout", str(tmp_path / "work")],
        ["mv", "names", "spelling"],
        ["drop", "log"],
    ):
        done = cached.run(*words, tree=False)
        assert done.status == 0, (words, done.err)
        assert "note: demo is not installed here" in done.err
        shutil.rmtree(cached.root / "build")


def test_what_changes_or_proves_a_tree_never_makes_one(cached: Demo) -> None:
    for command in ("apply", "verify", "status", "revert"):
        done = cached.run(command, tree=False)
        assert done.status == 1
        assert "demo is not installed in the environment" in done.err
    assert not (cached.root / "build").exists()


def test_an_interpreter_that_is_named_is_meant(cached: Demo) -> None:
    assert cached.run("lock", tree=False).status == 0
    import sys

    done = cached.run("verify", "--python", sys.executable, tree=False)
    assert done.status == 1
    assert "demo is not installed in the environment" in done.err
