"""Which bytecode belongs to a module, and writing it anew."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from patchforge.errors import TreeError
from patchforge.tree import bytecode
from patchforge.tree.root import Root

MINE = [
    "core.cpython-311.pyc",
    "core.cpython-39.pyc",
    "core.cpython-312.opt-1.pyc",
    "core.cpython-313.opt-2.pyc",
    "core.cpython-313.opt-anything.pyc",
    "core.cpython-313t.pyc",
    "core.pypy310-pp73.pyc",
    "core.pyston-23.opt-1.pyc",
]
OTHERS = [
    "score.cpython-311.pyc",
    "core2.cpython-311.pyc",
    "core.x.cpython-311.pyc",
    "cor.cpython-311.pyc",
    "core.cpython-311.pyc.140234",
    "core.cpython-311.py",
    "core.cpython-311.nbi",
]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for folder in ("__pycache__", "pkg/__pycache__"):
        (tmp_path / folder).mkdir(parents=True)
        for name in MINE + OTHERS:
            (tmp_path / folder / name).write_bytes(b"x")
    return tmp_path


@pytest.mark.parametrize("folder", ["", "pkg/"])
def test_every_tag_and_level_of_this_module_only(base: Path, folder: str) -> None:
    with Root(base) as root:
        assert bytecode.stale(root, f"{folder}core.py") == sorted(f"{folder}__pycache__/{name}" for name in MINE)
        assert bytecode.stale(root, f"{folder}core.x.py") == [f"{folder}__pycache__/core.x.cpython-311.pyc"]
        assert bytecode.stale(root, f"{folder}data.txt") == []
        assert bytecode.stale(root, "none/core.py") == []


def test_the_old_place_beside_the_source(base: Path) -> None:
    (base / "pkg/core.pyc").write_bytes(b"x")
    with Root(base) as root:
        assert "pkg/core.pyc" in bytecode.stale(root, "pkg/core.py")


@pytest.mark.parametrize("name", ["pkg/core.pyc", "pkg/__pycache__/core.cpython-310.pyc"])
def test_a_directory_of_that_name_is_no_bytecode(base: Path, name: str) -> None:
    (base / name).mkdir()
    with Root(base) as root:
        assert name not in bytecode.stale(root, "pkg/core.py")


def test_a_link_of_that_name_goes_and_not_its_target(base: Path) -> None:
    (base / "target").write_bytes(b"x")
    (base / "pkg/__pycache__/core.cpython-310.pyc").symlink_to(base / "target")
    with Root(base) as root:
        assert "pkg/__pycache__/core.cpython-310.pyc" in bytecode.stale(root, "pkg/core.py")


def test_a_cache_behind_a_link_is_refused(base: Path) -> None:
    (base / "pkg/__pycache__").rename(base / "elsewhere")
    (base / "pkg/__pycache__").symlink_to(base / "elsewhere")
    with Root(base) as root, pytest.raises(TreeError, match="symbolic link"):
        bytecode.stale(root, "pkg/core.py")


def test_written_bytecode_checks_its_source(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("X = 1\n")
    (tmp_path / "text.txt").write_text("X")
    with Root(tmp_path) as root:
        bytecode.write(root, ["mod.py", "text.txt"], None)
    (cached,) = (tmp_path / "__pycache__").iterdir()
    assert int.from_bytes(cached.read_bytes()[4:8], "little") == 0b11


def test_the_current_directory_has_no_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``compileall.py`` that lies about must not be run."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "compileall.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(here)
    (tmp_path / "mod.py").write_text("X = 1\n")
    with Root(tmp_path) as root:
        bytecode.write(root, ["mod.py"], None)
    assert not (here / "ran").exists()
    assert (tmp_path / "__pycache__").exists()


@pytest.mark.parametrize("mode", ["TIMESTAMP", "CHECKED_HASH", "UNCHECKED_HASH"])
def test_python_runs_the_new_source(tmp_path: Path, mode: str) -> None:
    """Same size, same time: whatever the old bytecode is checked by, it must not be what runs."""
    source = tmp_path / "mod.py"
    source.write_text("print(1)\n")
    os.utime(source, (1_000_000_000, 1_000_000_000))
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode[mode])
    with Root(tmp_path) as root:
        source.write_text("print(2)\n")
        os.utime(source, (1_000_000_000, 1_000_000_000))
        for path in bytecode.stale(root, "mod.py"):
            (tmp_path / path).unlink()
    done = subprocess.run(
        [sys.executable, "-c", "import mod"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "2\n"
