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
