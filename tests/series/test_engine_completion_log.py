"""One line per completed step, under the knob only, and its times add up to the wall clock."""

from __future__ import annotations

import pytest
from seen import Seen


def test_a_step_at_a_time(seen: Seen) -> None:
    assert seen.patched["steps"]["one at a time"]["lines"] == [
        "Engine step 1 completed: 10.0 ms, 5 tokens, 2 running, 1 waiting",
        "Engine step 2 completed: 10.0 ms, 7 tokens, 0 running, 1 waiting",
    ]


def test_overlapping_batches_are_timed_from_completion_to_completion(seen: Seen) -> None:
    lines = seen.patched["steps"]["overlapping"]["lines"]
    assert [line.split(": ")[1] for line in lines] == [
        "10.0 ms, 5 tokens, 1 running, 1 waiting",
        "10.0 ms, 6 tokens, 0 running, 1 waiting",
        "10.0 ms, 7 tokens, 0 running, 1 waiting",
    ]


@pytest.mark.parametrize("mode", ["idle between", "idle between, overlapping"])
def test_idle_time_is_not_counted(seen: Seen, mode: str) -> None:
    lines = seen.patched["steps"][mode]["lines"]
    assert [line.split(" ms")[0] for line in lines] == [
        "Engine step 1 completed: 10.0",
        "Engine step 2 completed: 10.0",
    ]


@pytest.mark.parametrize("mode", ["off", "off, overlapping"])
def test_without_the_knob_nothing_differs(seen: Seen, mode: str) -> None:
    assert seen.patched["steps"][mode] == seen.pristine["steps"][mode]
    assert seen.patched["steps"][mode]["lines"] == []


@pytest.mark.parametrize("mode", ["one at a time", "overlapping"])
def test_the_knob_changes_no_order_of_work(seen: Seen, mode: str) -> None:
    assert seen.patched["steps"][mode]["log"] == seen.pristine["steps"][mode]["log"]


def test_the_knob_takes_0_and_1(seen: Seen) -> None:
    assert not seen.pristine["knob"]["known"]
    values = seen.patched["knob"]["values"]
    assert {setting: values[setting] for setting in ("None", "0", "1")} == {"None": False, "0": False, "1": True}


@pytest.mark.parametrize("setting", ["", "true", "2"])
def test_anything_else_is_an_error_that_names_the_knob(seen: Seen, setting: str) -> None:
    assert f"'{setting}' for VLLM_ENGINE_COMPLETION_LOG" in seen.patched["knob"]["values"][setting]


def test_the_knob_compiles_nothing_anew(seen: Seen) -> None:
    assert not seen.patched["knob"]["factor"]
    assert seen.patched["knob"]["factors"] > 50
