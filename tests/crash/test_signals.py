"""^C and SIGTERM at every step of a change: the process that was asked to end leaves the tree as it was, or as it should be."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from shapes import SHAPES, Scene

from patchforge.cli import _end
from patchforge.errors import Interrupted
from trees import snapshot

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> object:
    """What the command line installs."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, _end)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("shape", SHAPES)
def test_asked_to_end_at_every_step(quick_path: Path, shape: str) -> None:
    scene = Scene(quick_path, shape)
    for step, name in enumerate(scene.steps):
        place = scene.copy("signal")
        number = SIGNALS[step % 3]
        count = 0

        def hook(_: str, step: int = step, number: int = number) -> None:
            nonlocal count
            if count == step:
                os.kill(os.getpid(), number)
            count += 1

        with pytest.raises(KeyboardInterrupt) as caught:
            scene.action(place, hook)
        after = step >= scene.decided
        assert snapshot(place.site) == (scene.new if after else scene.old), f"step {step} ({name})"
        assert place.recover() is None, f"step {step} ({name}): the next run had something to do"
        if after:
            assert isinstance(caught.value, Interrupted)
            assert caught.value.status == 128 + number
            assert caught.value.done == "the change it came into was brought to its end"


def test_a_second_signal_while_the_first_is_dealt_with(quick_path: Path) -> None:
    """Impatience does no harm: taking back is not interrupted either."""
    scene = Scene(quick_path, "apply")
    for step in range(scene.decided):
        place = scene.copy("signal")
        count = 0

        def hook(_: str, step: int = step) -> None:
            nonlocal count
            count += 1
            if count > step:
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            scene.action(place, hook)
        assert snapshot(place.site) == scene.old
        assert place.recover() is None
