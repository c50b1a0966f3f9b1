"""A dead engine's shared memory goes; a living one's stays, wherever it lives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchforge.serving.leftovers import IN_USE, remove_leftovers

MAP = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR if sys.argv[2] == "write" else os.O_RDONLY)
if sys.argv[3] == "map":
    prot = mmap.PROT_READ | (mmap.PROT_WRITE if sys.argv[2] == "write" else 0)
    kept = mmap.mmap(fd, 8192, flags=mmap.MAP_SHARED, prot=prot)
    os.close(fd)
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def region() -> Iterator[Path]:
    if not Path("/dev/shm").is_dir():
        pytest.skip("needs /dev/shm")
    path = Path(f"/dev/shm/patchforge_test_{uuid.uuid4().hex}.mmap")
    path.write_bytes(b"x" * 8192)
    yield path
    path.unlink(missing_ok=True)


def test_nobody_uses_it(region: Path) -> None:
    (found,) = remove_leftovers([str(region)])
    assert (found.path, found.size, found.removed) == (str(region), 8192, True)
    assert not region.exists()


@pytest.mark.parametrize("how", ["write", "read"])
@pytest.mark.parametrize("what", ["map", "open"])
@pytest.mark.parametrize("where", ["here", "another namespace"])
def test_somebody_uses_it(region: Path, how: str, what: str, where: str) -> None:
    command = [sys.executable, "-c", MAP, str(region), how, what]
    if where != "here":
        unshare = ["unshare", "--pid", "--mount", "--fork", "--kill-child"]
        tried = (
            subprocess.run([*unshare, "true"], capture_output=True, check=False) if shutil.which("unshare") else None
        )
        if tried is None or tried.returncode:
            pytest.skip("needs unshare and the right to use it")
        command = [*unshare, *command]
    user = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert user.stdout is not None and user.stdout.readline() == b"up\n"
        (found,) = remove_leftovers([str(region)])
        assert (found.removed, found.why) == (False, IN_USE)
        assert region.exists()
    finally:
        user.communicate(timeout=20)
    (found,) = remove_leftovers([str(region)])
    assert found.removed and not region.exists()


def test_what_is_not_a_file_of_ours_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"1")
    (tmp_path / "a.mmap").symlink_to(target)
    (tmp_path / "b.mmap").mkdir()
    os.mkfifo(tmp_path / "c.mmap")
    assert remove_leftovers([str(tmp_path / "*.mmap")]) == []
    assert sorted(os.listdir(tmp_path)) == ["a.mmap", "b.mmap", "c.mmap", "target"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "d.mmap"
    path.write_bytes(b"1")
    os.chown(path, 12345, 12345)
    assert remove_leftovers([str(path)]) == []
    assert path.exists()
