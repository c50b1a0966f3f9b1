"""SIGKILL at every step of a change: afterwards the tree is what it was or what it should be, and nothing in between stays.

The steps are those the disk layer announces; a test here checks that every system call that changes the disk lies between two
of them.  Each case is one forked process that kills itself, so hundreds of them take seconds.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from shapes import SHAPES, Scene, killed
from watch import watching

from trees import snapshot

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
SCALE = int(os.environ.get("PATCHFORGE_FUZZ_SCALE", "1"))


@pytest.mark.parametrize("shape", SHAPES)
def test_killed_at_every_step(quick_path: Path, shape: str) -> None:
    scene = Scene(quick_path, shape)
    assert len(scene.steps) >= 20
    journal = next(n for n, step in enumerate(scene.steps) if step.startswith("created"))
    dropped = max(n for n, step in enumerate(scene.steps) if step.startswith("removed"))
    for step, name in enumerate(scene.steps):
        place = scene.copy("kill")
        killed(lambda hook, place=place: scene.action(place, hook), step)
        told = place.recover()
        if journal <= step < dropped:
            assert told is not None, f"step {step} ({name}): the next run said nothing"
            assert ("finished" in told) == (step >= scene.decided), f"step {step} ({name}): {told}"
        else:
            assert told is None
        assert snapshot(place.site) == (scene.new if step >= scene.decided else scene.old), f"step {step} ({name})"
        assert place.recover() is None
        # What the tree became is a sound start for the next run.
        if step % 5 == 0:
            scene.action(place, None)
            assert snapshot(place.site) == scene.new


def test_killed_while_a_file_is_half_written(quick_path: Path) -> None:
    scene = Scene(quick_path, "small")
    real = os.write

    def half(fd: int, data: memoryview) -> int:
        return real(fd, data[: len(data) // 2 or 1])

    cases = 0
    for step in range(10_000):
        place = scene.copy("kill")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "write", half)
            try:
                killed(lambda hook, place=place: scene.action(place, hook), step)
            except AssertionError:
                break
        place.recover()
        assert snapshot(place.site) in (scene.old, scene.new)
        cases += 1
    assert cases > len(scene.steps) + 20


@pytest.mark.parametrize("shape", ["small", *(s for s in SHAPES if s != "small" and SCALE > 1)])
def test_killed_again_while_recovering(quick_path: Path, shape: str) -> None:
    """Every step of a recovery, from every third state that a kill leaves behind; from all of them on a longer run."""
    scene = Scene(quick_path, shape)
    cases = 0
    every = 1 if SCALE > 1 else 3
    for step in range(scene.decided % every, len(scene.steps), every):
        once = scene.copy("once")
        killed(lambda hook, place=once: scene.action(place, hook), step)
        recovery: list[str] = []
        scene.copy("count", once).recover(recovery.append)
        for second, name in enumerate(recovery):
            place = scene.copy("twice", once)
            killed(place.recover, second)
            place.recover()
            assert snapshot(place.site) == (scene.new if step >= scene.decided else scene.old), (
                scene.steps[step],
                name,
            )
            assert place.recover() is None
            cases += 1
    assert cases > 40


@pytest.mark.parametrize("shape", SHAPES)
def test_every_change_of_the_disk_lies_between_two_steps(quick_path: Path, shape: str) -> None:
    scene = Scene(quick_path, shape)
    events: list[str] = []
    place = scene.copy("watched")
    with watching(place.site, after=lambda call, path: events.append(f"{call} {path}")):
        scene.action(place, lambda step: events.append(f"* {step}"))
    changes = [event for event in events if not event.startswith("*")]
    assert len(changes) > 20
    for one, two in itertools.pairwise(events):
        # Flushing runs in parallel, and a kill between two flushes leaves what a kill before both does.
        flushes = one.startswith("fsync") and two.startswith("fsync")
        assert flushes or one.startswith("*") or two.startswith("*"), (one, two)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_power_cut_could_lose_is_flushed_in_time(quick_path: Path, shape: str) -> None:
    """Contents before the names that stand for them, names before the journal says that they are there or done."""
    scene = Scene(quick_path, shape)
    place = scene.copy("watched")
    dirty: dict[str, str] = {}  # path: what was done to it since its last flush
    checked: list[str] = []

    def folder(path: str) -> str:
        return path.rpartition("/")[0]

    def after(call: str, path: str) -> None:
        if call == "fsync":
            dirty.pop(path, None)
        elif call in ("write", "fchmod", "fchown"):
            dirty[path] = call
        else:
            dirty.pop(path, None) if call == "rmdir" else None
            dirty[folder(path)] = f"{call} {path}"

    def before(call: str, path: str) -> None:
        name = path.rpartition("/")[2]
        first_change = name not in (".patchforge-prepare", ".patchforge-commit") and call in ("open", "mkdir")
        if first_change and "start" not in checked:
            assert not dirty, f"{call} {path} before the journal is safe: {dirty}"
            checked.append("start")
        if (call, name) in (("rename", ".patchforge-commit"), ("unlink", ".patchforge-commit")):
            assert not dirty, f"{call} of the journal, and not flushed: {dirty}"
            checked.append(call)

    with watching(place.site, before, after):
        scene.action(place, None)
    assert checked == ["start", "rename", "unlink"]
