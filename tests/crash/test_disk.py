"""Real obstacles: a full disk, read-only files and mounts, another process at work, a kill at any time."""

from __future__ import annotations

import contextlib
import errno
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
from watch import watching

from installed import FIRST, Place, patch
from patchforge.errors import TreeError
from trees import snapshot

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


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
            assert "nothing was changed" in str(error)
            assert place.look() == old
        filler.unlink()
    else:
        pytest.fail("it never fitted")
    assert kept > 0


IMMUTABLE = {
    "a file that changes": "demo/core.py",
    "a file that goes": "demo/old.py",
    "RECORD": "demo-1.0.dist-info/RECORD",
    "a directory": "demo",
    "a directory in which a file goes": "demo/sub",
    "bytecode that goes": "demo/__pycache__",
    "the dist-info": "demo-1.0.dist-info",
}


@pytest.mark.skipif(shutil.which("chattr") is None, reason="needs chattr")
@pytest.mark.parametrize("path", IMMUTABLE.values(), ids=IMMUTABLE)
@pytest.mark.parametrize("action", ["apply", "revert"])
def test_what_may_not_be_changed_stops_all_of_it(tmp_path: Path, path: str, action: str) -> None:
    """Even root may not replace an immutable file; that is found out before the change is decided."""
    place = Place(tmp_path)
    place.install()
    if action == "revert":
        place.apply(FIRST)
    old = snapshot(place.site)
    target = place.site / path
    if not target.exists():
        pytest.skip("not part of this change")
    if subprocess.run(["chattr", "+i", str(target)], capture_output=True, check=False).returncode:
        pytest.skip("the file system has no immutable files, or this user may not make one")
    try:
        with pytest.raises(
            TreeError, match=r"cannot write .*(immutable|Operation not permitted|may not be removed)"
        ) as told:
            place.apply(FIRST) if action == "apply" else place.revert()
    finally:
        subprocess.run(["chattr", "-i", str(target)], check=True)
    assert "nothing was changed" in str(told.value)
    assert snapshot(place.site) == old
    assert place.recover() is None


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


def test_a_read_only_directory_leaves_nothing_behind(tmp_path: Path) -> None:
    """There the kernel refuses to remove even what does not exist: that must not stop the clearing away of the rest."""
    place = Place(tmp_path)
    place.install()
    old = place.look()

    def before(call: str, path: str) -> None:
        if path.startswith("demo/sub/"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    patches = {
        "more": patch(
            "more",
            "diff --git a/plain.txt b/plain.txt\n--- a/plain.txt\n+++ b/plain.txt\n@@ -1,2 +1,3 @@\n plain\n+new\n text\n"
            "diff --git a/sub/more.py b/sub/more.py\nnew file mode 100644\n--- /dev/null\n+++ b/sub/more.py\n@@ -0,0 +1 @@\n+M = 1\n",
        )
    }
    with watching(place.site, before), pytest.raises(TreeError) as told:
        place.apply(patches)
    assert "cannot write demo/sub/.more.py.patchforge-tmp: Read-only file system" in str(told.value)
    assert "nothing was changed" in str(told.value)
    assert place.look() == old
    assert not list(place.site.rglob(".*patchforge*"))


SCRIPT = """
import sys
sys.path[:0] = sys.argv[2].split(":")
from pathlib import Path
from installed import Place
place = Place(Path(sys.argv[1]))
print(place.apply_as_it_is(say=lambda text: print(text, flush=True)).outcome)
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
    for process in both:
        assert process.stdout is not None
        assert "waiting for another patchforge" in process.stdout.readline()
    os.close(lock)
    words = []
    for process in both:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        words.append(out.split()[-1])
    assert sorted(words) == ["already", "applied"]


def test_killed_at_any_time(tmp_path: Path) -> None:
    """A process killed from outside after a random time, again and again, on one tree."""
    place = Place(tmp_path)
    place.install(bytecode=False)
    place.series(FIRST)
    old = snapshot(place.site)
    begin = time.monotonic()
    place.apply_as_it_is()
    whole = time.monotonic() - begin
    new = snapshot(place.site)
    place.revert()
    chance = random.Random(7)
    killed = 0
    for _ in range(60):
        child = os.fork()
        if child == 0:
            try:
                place.apply_as_it_is()
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0, whole))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        place.recover()
        found = snapshot(place.site)
        assert found in (old, new)
        if found == new:
            place.revert()
    assert killed
