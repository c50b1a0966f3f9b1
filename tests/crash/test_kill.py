"""SIGKILL at every step of a change: afterwards the tree is what it was or what it should be, and nothing in between stays.

The steps are those the transaction announces; a test in this folder checks that every system call that changes the disk lies
between two of them.  Each case is one forked process that kills itself, so hundreds of them take seconds.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from installed import FIRST, SECOND, Place

Action = Callable[[Place, Callable[[str], None]], object]

SHAPES: dict[str, tuple[list[dict[str, bytes]], Action]] = {
    "apply": ([], lambda place, hook: place.apply(FIRST, hook)),
    "revert": ([FIRST], lambda place, hook: place.revert(hook)),
    "replace": ([FIRST], lambda place, hook: place.apply(SECOND, hook)),
    "replace back": ([SECOND], lambda place, hook: place.apply(FIRST, hook)),
}


def prepared(base: Path, before: list[dict[str, bytes]]) -> Place:
    place = Place(base)
    place.install()
    for patches in before:
        place.apply(patches)
    return place


def steps_of(place: Place, action: Action) -> list[str]:
    seen: list[str] = []
    action(place, seen.append)
    return seen


def killed(place: Place, action: Action, step: int) -> None:
    """Run ``action`` in a child that kills itself at ``step``."""
    child = os.fork()
    if child == 0:
        try:
            count = 0

            def hook(_: str) -> None:
                nonlocal count
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1

            action(place, hook)
        finally:
            os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child was not killed"


@pytest.mark.parametrize("shape", SHAPES)
def test_killed_at_every_step(tmp_path: Path, shape: str) -> None:
    before, action = SHAPES[shape]
    start = prepared(tmp_path / "start", before)
    old = start.look()
    shutil.copytree(start.base, tmp_path / "done")
    finished = Place(tmp_path / "done")
    steps = steps_of(finished, action)
    new = finished.look()
    assert old != new
    assert len(steps) >= 20
    decided = steps.index("committed")
    for step, name in enumerate(steps):
        place = Place(tmp_path / f"kill-{step}")
        shutil.copytree(start.base, place.base)
        killed(place, action, step)
        told = place.recover()
        assert told is not None, f"step {step} ({name}): the next run said nothing"
        assert ("finished" in told) == (step >= decided), f"step {step} ({name}): {told}"
        assert place.look() == (new if step >= decided else old), f"step {step} ({name})"
        assert place.recover() is None
        # What the tree became is a sound start for the next run.
        if step % 5 == 0:
            action(place, lambda _: None)
            assert place.look() == new
        shutil.rmtree(place.base)


@pytest.mark.parametrize("shape", ["apply", "revert"])
def test_killed_again_while_recovering(tmp_path: Path, shape: str) -> None:
    before, action = SHAPES[shape]
    start = prepared(tmp_path / "start", before)
    old = start.look()
    shutil.copytree(start.base, tmp_path / "done")
    finished = Place(tmp_path / "done")
    steps = steps_of(finished, action)
    new, decided = finished.look(), steps.index("committed")
    cases = 0
    for step in (decided - 1, decided - 4, decided, decided + 3, len(steps) - 1):
        once = Place(tmp_path / "once")
        shutil.copytree(start.base, once.base)
        killed(once, action, step)
        shutil.copytree(once.base, tmp_path / "count")
        recovery: list[str] = []
        Place(tmp_path / "count").recover(recovery.append)
        for second in range(len(recovery)):
            place = Place(tmp_path / "twice")
            shutil.copytree(once.base, place.base)
            killed(place, lambda p, hook: p.recover(hook), second)
            place.recover()
            assert place.look() == (new if step >= decided else old), (steps[step], recovery[second])
            assert place.recover() is None
            shutil.rmtree(place.base)
            cases += 1
        shutil.rmtree(tmp_path / "count")
        shutil.rmtree(once.base)
    assert cases > 20


def test_every_change_of_the_disk_lies_between_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No two system calls that change the disk follow each other without a step between, but those that belong together."""
    place = prepared(tmp_path, [])
    events: list[str] = []
    for name in ("mkdir", "rename", "replace", "unlink", "rmdir", "write"):
        real = getattr(os, name)

        def record(*args: object, _real: Callable[..., object] = real, _name: str = name, **kwargs: object) -> object:
            events.append(_name)
            return _real(*args, **kwargs)

        monkeypatch.setattr(os, name, record)
    place.apply(FIRST, lambda step: events.append(f"* {step}"))
    events = events[events.index("write") :]  # what comes before is this test writing its series
    runs: list[list[str]] = [[]]
    for event in events:
        if event.startswith("*"):
            runs.append([])
        else:
            runs[-1].append(event)
    for run in runs:
        # Removing emptied directories is one step: any number of them may be gone.
        changes = [event for event in run if event != "rmdir"]
        assert len(changes) <= 1, runs


FAULTS = ("open", "write", "fsync", "fchmod", "rename", "replace", "unlink", "mkdir")


@pytest.mark.parametrize("call", FAULTS)
def test_every_call_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Each call in turn fails once with ENOSPC: the tree is as before with an error that says so, or the next run finishes it."""
    import errno

    start = prepared(tmp_path / "start", [])
    old = start.look()
    shutil.copytree(start.base, tmp_path / "done")
    finished = Place(tmp_path / "done")
    finished.apply(FIRST)
    new = finished.look()
    real = getattr(os, call)
    failing = 0
    for at in range(200):
        place = Place(tmp_path / f"fault-{at}")
        shutil.copytree(start.base, place.base)
        place.series(FIRST)
        count, armed, failed = 0, False, False

        def faulty(*args: object, **kwargs: object) -> object:
            nonlocal count, failed
            writes = call != "open" or (len(args) > 1 and isinstance(args[1], int) and args[1] & os.O_CREAT)
            if armed and writes:
                count += 1
                if count == at + 1:
                    failed = True
                    raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args, **kwargs)

        monkeypatch.setattr(os, call, faulty)
        armed = True
        error = None
        try:
            place.apply(FIRST)
        except Exception as raised:
            error = raised
        armed = False
        monkeypatch.setattr(os, call, real)
        if not failed:
            break
        failing += 1
        told = place.recover()
        found = place.look()
        assert found in (old, new), f"{call} number {at}: neither"
        if error is not None:
            from patchforge.errors import TreeError

            assert isinstance(error, TreeError), f"{call} number {at}: {error!r}"
            assert "No space left" in str(error)
            assert found == old or told is not None
        shutil.rmtree(place.base)
    assert failing > 0
