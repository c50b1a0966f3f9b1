"""What can go wrong with the report itself, and with the process that makes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATCH = b"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-x\n+y\n c\n"


def start(place: Path, *words: str, stdout: object = subprocess.PIPE, **env: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "patchforge", *words]
    return subprocess.Popen(command, cwd=place, env={**os.environ, **env}, stdout=stdout, stderr=subprocess.PIPE)


def bare(place: Path, name: str = "f", count: int = 1) -> list[str]:
    """A tree of ``count`` files and a series that changes them."""
    (place / "p").mkdir()
    (place / "t").mkdir()
    files = [name if count == 1 else f"{name}{n}" for n in range(count)]
    for file in files:
        (place / "t" / file).write_bytes(b"a\nx\nc\n")
    patch = b"".join(PATCH.replace(b"/f", f"/{file}".encode()) for file in files)
    (place / "p/a.patch").write_bytes(patch)
    (place / "p/series").write_text("a.patch\n")
    return ["--quilt", "p", "--tree", "t"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
@pytest.mark.parametrize("format", ["text", "json", "github", "markdown"])
def test_a_report_that_cannot_be_written(tmp_path: Path, format: str) -> None:
    words = bare(tmp_path)
    with open("/dev/full", "wb") as full:
        done = start(tmp_path, "apply", *words, "--format", format, stdout=full)
        _, err = done.communicate(timeout=60)
    assert done.returncode == 2
    assert b"error: cannot write the report: No space left on device\n" in err
    assert b"the command itself ended with status 0" in err
    assert b"Traceback" not in err and b"Exception ignored" not in err
    assert (tmp_path / "t/f").read_bytes() == b"a\ny\nc\n"


def test_a_name_the_output_cannot_show(tmp_path: Path) -> None:
    words = bare(tmp_path, "\u00e9")
    done = start(tmp_path, "apply", *words, PYTHONIOENCODING="ascii")
    out, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    assert b"\\xe9" in out
    assert b"Traceback" not in err


def test_a_locale_that_has_no_name_for_a_file(tmp_path: Path) -> None:
    words = bare(tmp_path, "\u00e9")
    done = start(tmp_path, "apply", *words, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    _, err = done.communicate(timeout=60)
    assert done.returncode == 2, err
    assert b"its encoding is ascii" in err and b"PYTHONUTF8=1" in err
    assert (tmp_path / "t/\u00e9").read_bytes() == b"a\nx\nc\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_asked_to_end_says_so_and_leaves_nothing_half_done(tmp_path: Path, number: int) -> None:
    # A job in the background is started with ^C ignored, and would hand that on.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        asked_to_end(tmp_path, number)
    finally:
        signal.signal(signal.SIGINT, before)


def asked_to_end(tmp_path: Path, number: int) -> None:
    words = bare(tmp_path, "f", 150)
    old = {p.name: p.read_bytes() for p in (tmp_path / "t").iterdir()}
    asked = 0
    for _ in range(6):
        done = start(tmp_path, "apply", *words)
        limit = time.monotonic() + 60  # as soon as it has begun to change the tree
        while done.poll() is None and time.monotonic() < limit:
            if any(name.startswith(".") for name in os.listdir(tmp_path / "t")):
                done.send_signal(number)
                break
        _, err = done.communicate(timeout=60)
        now = {p.name: p.read_bytes() for p in (tmp_path / "t").iterdir() if p.name != ".patchforge-lock"}
        assert now == old or set(now.values()) == {b"a\ny\nc\n"}
        if done.returncode:
            asked += 1
            assert done.returncode == 128 + number
            assert err.startswith(b"interrupted")
        if now != old:
            revert = start(tmp_path, "revert", *words)
            revert.communicate(timeout=60)
            assert revert.returncode == 0
    assert asked
