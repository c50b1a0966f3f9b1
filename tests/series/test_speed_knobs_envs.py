"""The shared knobs are known to vLLM, typed, bounded, and strict about what they take."""

from __future__ import annotations

import pytest
from knobs import SPEED_KNOBS
from seen import Seen


def expected(name: str, setting: str) -> object:
    default = SPEED_KNOBS[name][0]
    if isinstance(default, bool):
        return setting == "1"
    return type(default)(setting) if isinstance(default, int | float) else setting


@pytest.mark.parametrize("name", SPEED_KNOBS)
def test_unset_it_has_its_default(seen: Seen, name: str) -> None:
    default = SPEED_KNOBS[name][0]
    assert seen.pristine["knob values"][name]["None"] is None
    assert seen.pristine["knob types"][name] == "NoneType"
    assert seen.patched["knob values"][name]["None"] == default
    assert seen.patched["knob types"][name] == type(default).__name__


@pytest.mark.parametrize(("name", "setting"), [(n, s) for n, (_, valid, _) in SPEED_KNOBS.items() for s in valid])
def test_a_valid_setting_is_taken(seen: Seen, name: str, setting: str) -> None:
    value = seen.patched["knob values"][name][setting]
    assert value == expected(name, setting)
    assert isinstance(value, type(expected(name, setting)))


@pytest.mark.parametrize(("name", "setting"), [(n, s) for n, (_, _, bad) in SPEED_KNOBS.items() for s in bad])
def test_anything_else_is_an_error_that_names_the_knob(seen: Seen, name: str, setting: str) -> None:
    value = seen.patched["knob values"][name][setting]
    assert isinstance(value, str)
    assert value.startswith(f"error: Invalid value '{setting}' for {name}.")


def test_vllm_lists_them(seen: Seen) -> None:
    assert set(SPEED_KNOBS) <= set(seen.patched["knobs listed"])
    assert seen.pristine["knobs listed"] == []


def test_no_knob_is_registered_twice(seen: Seen) -> None:
    assert seen.patched["knobs twice"] == seen.pristine["knobs twice"] == []
