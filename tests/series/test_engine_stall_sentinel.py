"""One warning per episode, never while idle, paused or early, and nothing in the engine without the knob."""

from __future__ import annotations

import pytest
from seen import Seen

HANG = "WARNING The engine has completed no step for 10.0 s with 2 requests running and 1 waiting. What its threads are doing:\n"
RECOVERED = "INFO The engine is no longer stalled."


def first_lines(seen: Seen, name: str) -> list[str]:
    return [line.split(" What")[0] for line in seen.patched["sentinel"]["scripts"][name]]


def test_a_hang_is_reported_once_with_stacks(seen: Seen) -> None:
    assert seen.pristine["sentinel"] is None
    (line,) = seen.patched["sentinel"]["scripts"]["hang"]
    assert line.startswith(HANG)
    assert "MainThread" in line
    # The stack of the main thread, down to the look that found it.
    assert "self.sentinel.look(self.now)" in line


@pytest.mark.parametrize("name", ["busy", "idle", "idle_then_busy", "paused", "just_short"])
def test_there_is_no_report_without_a_stall(seen: Seen, name: str) -> None:
    assert first_lines(seen, name) == []


def test_it_recovers_and_is_armed_again(seen: Seen) -> None:
    warning = "WARNING The engine has completed no step for 10.0 s with 1 requests running and 0 waiting."
    assert first_lines(seen, "recovers_and_hangs_again") == [warning, RECOVERED, warning]


def test_requests_that_are_gone_end_the_episode(seen: Seen) -> None:
    assert first_lines(seen, "aborted")[1:] == [RECOVERED]


def test_its_thread_survives_an_error_and_does_the_same(seen: Seen) -> None:
    thread = seen.patched["sentinel"]["thread"]
    assert thread["alive"] and thread["daemon"]
    kinds = [line.split(" ")[0] for line in thread["lines"]]
    assert kinds[:3] == ["ERROR", "WARNING", "INFO"]
    assert "time.sleep(0.01)" in thread["lines"][1]
    assert "EngineStallSentinel" not in thread["lines"][1]


def test_what_counts_as_progress(seen: Seen) -> None:
    # Tokens scheduled, or an output; not a step that did nothing.
    assert seen.patched["sentinel steps"]["on"]["answers"] == [[True, 1], [False, 1], [False, 0], [False, 0], [True, 1]]


def test_without_the_knob_a_step_is_what_it_was(seen: Seen) -> None:
    assert seen.patched["sentinel steps"]["off"] == seen.pristine["sentinel steps"]["off"]


def test_the_knob_is_off_by_default_and_takes_seconds(seen: Seen) -> None:
    values = seen.patched["knob values"]["VLLM_ENGINE_STALL_SENTINEL_S"]
    assert {setting: values[setting] for setting in ("None", "0", "2.5")} == {"None": 0.0, "0": 0.0, "2.5": 2.5}
    for setting in ("-1", "nan", "inf", "soon", ""):
        assert values[setting].startswith(f"error: Invalid value '{setting}' for VLLM_ENGINE_STALL_SENTINEL_S.")
