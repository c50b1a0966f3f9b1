"""The key of the compilation cache: moved by what may change compiled code, and by nothing that only matters at run time."""

from __future__ import annotations

import pytest
from knobs import RUNTIME_ONLY, SPEED_KNOBS, UPSTREAM_RUNTIME_ONLY
from seen import Seen


@pytest.mark.parametrize("name", RUNTIME_ONLY)
def test_a_run_time_knob_does_not_move_it(seen: Seen, name: str) -> None:
    assert seen.patched["factors moved by"][name] == []


@pytest.mark.parametrize("name", sorted(UPSTREAM_RUNTIME_ONLY))
def test_pristine_compiles_anew(seen: Seen, name: str) -> None:
    assert seen.pristine["factors moved by"][name] == [name]


@pytest.mark.parametrize("name", sorted(set(SPEED_KNOBS) - set(RUNTIME_ONLY)))
def test_a_knob_that_may_change_compiled_code_moves_it(seen: Seen, name: str) -> None:
    assert seen.patched["factors moved by a speed knob"][name] == [name]


def test_nothing_else_left_the_key_or_came_into_it(seen: Seen) -> None:
    before, after = set(seen.pristine["factors"]), set(seen.patched["factors"])
    assert before - after == UPSTREAM_RUNTIME_ONLY
    assert after - before == set(SPEED_KNOBS) - set(RUNTIME_ONLY)
