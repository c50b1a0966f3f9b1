"""Real obstacles: a full disk, read-only files and mounts, another process at work, a kill at any time."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from installed import FIRST, Place
from patchforge.errors import TreeError


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with a few pages of room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting a small file system needs to be allowed")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    place = Place(small_disk)
    place.install(bytecode=False)
    place.series(FIRST)
    for kept in range(0, 80, 4):
        old = place.look()
        filler = small_disk / "filler"
        fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while os.write(fd, b"x" * 1024):
                pass
        os.close(fd)
        os.truncate(filler, max(filler.stat().st_size - kept * 1024, 0))
        try:
            place.apply(FIRST)
            break
        except TreeError as error:
            assert "No space left" in str(error)
            assert place.look() == old
        filler.unlink()
    else:
        pytest.fail("it never fitted")
    assert kept > 0


@pytest.mark.skipif(shutil.which("chattr") is None, reason="needs chattr")
def test_a_file_that_may_not_be_replaced(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install()
    old = place.look()
    target = place.site / "demo/core.py"
    if subprocess.run(["chattr", "+i", str(target)], capture_output=True, check=False).returncode:
        pytest.skip("the file system has no immutable files")
    try:
        with pytest.raises(TreeError, match="decided and not finished"):
            place.apply(FIRST)
    finally:
        subprocess.run(["chattr", "-i", str(target)], check=True)
    told = place.recover()
    assert told is not None
    assert "finished" in told
    assert place.look() != old
    place.revert()
    assert place.look() == old


def test_a_read_only_mount(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install()
    old = place.look()
    site = str(place.site)
    if subprocess.run(["mount", "--bind", site, site], capture_output=True, check=False).returncode:
        pytest.skip("mounting needs to be allowed")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", site], check=True)
        with pytest.raises(TreeError, match="Read-only file system"):
            place.apply(FIRST)
    finally:
        subprocess.run(["umount", site], check=True)
    assert place.look() == old


SCRIPT = """
import sys
sys.path[:0] = sys.argv[2].split(":")
from pathlib import Path
from installed import FIRST, Place
place = Place(Path(sys.argv[1]))
print(place.apply(FIRST, say=lambda text: print(text, flush=True)).outcome)
"""


def start(place: Place) -> subprocess.Popen[str]:
    here = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(place.base), here], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_two_at_once_wait_for_each_other(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install()
    place.series(FIRST)
    import fcntl

    lock = os.open(place.site / "demo-1.0.dist-info", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    both = [start(place), start(place)]
    assert both[0].stdout is not None
    assert "waiting for another patchforge" in both[0].stdout.readline()
    os.close(lock)
    words = []
    for process in both:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        words.append(out.split()[-1])
    assert sorted(words) == ["already", "applied"]


def test_killed_at_any_time(tmp_path: Path) -> None:
    """A whole process killed after a random time, again and again, on one tree."""
    place = Place(tmp_path)
    place.install()
    place.series(FIRST)
    old = place.look()
    place.apply(FIRST)
    new = place.look()
    place.revert()
    chance = random.Random(7)
    outcomes = set()
    begin = time.monotonic()
    start(place).communicate()
    whole = time.monotonic() - begin
    place.revert()
    for _ in range(24):
        process = start(place)
        time.sleep(chance.uniform(0.6, 1.05) * whole)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        place.recover()
        found = place.look()
        assert found in (old, new)
        outcomes.add(found == new)
        if found == new:
            place.revert()
    assert outcomes
