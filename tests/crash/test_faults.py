"""Every system call that changes the disk fails in turn: the tree is as before, or the next run finishes; the error says so."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from shapes import SHAPES, Scene
from watch import watching

from patchforge.errors import TreeError
from trees import Snapshot, snapshot

SCALE = int(os.environ.get("PATCHFORGE_FUZZ_SCALE", "1"))
CODES = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS)


def attempt(scene: Scene, place: Any, at: int, code: int, for_good: bool) -> tuple[Exception | None, str]:
    """Run the shape's action; the call number ``at`` fails, and with ``for_good`` all that follow it."""
    count, broken = 0, ""

    def before(call: str, path: str) -> None:
        nonlocal count, broken
        count += 1
        if count == at + 1 or (for_good and count > at):
            broken = broken or f"{call} {path}"
            raise OSError(code, os.strerror(code))

    with watching(place.site, before):
        try:
            scene.action(place, None)
        except Exception as error:
            return error, broken
    return None, broken


def test_where_no_thread_can_be_started_files_are_flushed_one_by_one(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(quick_path, "apply")
    place = scene.copy("place")

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    flushed: list[str] = []
    with watching(place.site, after=lambda call, path: flushed.append(path) if call == "fsync" else None):
        scene.action(place, None)
    assert snapshot(place.site) == scene.new
    assert "demo/.core.py.patchforge-tmp" in flushed


def without_empty_directories(found: Snapshot) -> Snapshot:
    return {path: entry for path, entry in found.items() if entry[0] != "directory"}


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for-good"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_call_may_fail(quick_path: Path, shape: str, for_good: bool) -> None:
    scene = Scene(quick_path, shape)
    cases = 0
    for at in range(10_000):
        codes = CODES if SCALE > 1 else (CODES[at % len(CODES)],)
        broken = ""
        for code in codes:
            place = scene.copy("fault")
            error, broken = attempt(scene, place, at, code, for_good)
            if not broken:
                break
            where = f"call {at} ({broken}) failing with {errno.errorcode[code]}"
            found = snapshot(place.site)
            if error is not None:
                assert isinstance(error, TreeError), f"{where}: {error!r}"
                assert os.strerror(code) in str(error), where
                if "nothing was changed" in str(error):
                    assert found == scene.old, where
                else:
                    assert "deals with this first" in str(error), where
            else:
                assert without_empty_directories(found) == without_empty_directories(scene.new), where
            told = place.recover()
            found = snapshot(place.site)
            if broken.startswith("rmdir") and code == errno.EACCES:
                # A directory that may not be removed stays, empty; that is no reason to stop a decided change.
                assert without_empty_directories(found) == without_empty_directories(scene.new), where
            else:
                assert found in (scene.old, scene.new), where
            assert told is None or "finished" in told or "rolled back" in told or "changed nothing" in told, where
            cases += 1
        if not broken:
            break
    assert cases > 20
