"""A model may be named by its path or the path's last component, exactly."""

from __future__ import annotations

import pytest
from seen import Seen


@pytest.mark.parametrize("name", ["path", "basename"])
def test_path_and_basename_are_accepted(seen: Seen, name: str) -> None:
    assert seen.pristine["names"][name][0] == 404
    assert seen.patched["names"][name] == seen.patched["names"]["served"]


@pytest.mark.parametrize("name", ["served", "second"])
def test_served_names_are_as_they_were(seen: Seen, name: str) -> None:
    assert seen.patched["names"][name] == seen.pristine["names"][name]
    assert seen.patched["names"][name][0] == 200


@pytest.mark.parametrize("name", ["path/", "part", "case", "parent", "slash", "unknown"])
def test_nothing_else_is(seen: Seen, name: str) -> None:
    assert seen.patched["names"][name][0] == 404


def test_an_adapter_takes_no_name_that_would_hide_it(seen: Seen) -> None:
    assert seen.pristine["adapters"] == {"served": False, "basename": True, "new": True}
    assert seen.patched["adapters"] == {"served": False, "basename": False, "new": True}


def test_the_registry_matches_exactly(seen: Seen) -> None:
    accepted = {case for case, ok in seen.patched["registry"].items() if ok}
    assert accepted == {
        *("Qwen/Qwen3-27B as Qwen/Qwen3-27B", "Qwen/Qwen3-27B as Qwen3-27B"),
        *("/m/q/ as /m/q/", "/m/q/ as /m/q", "/m/q/ as q"),
        *("plain as plain", "plain as s", "/ as /"),
    }
    assert {case for case, ok in seen.pristine["registry"].items() if ok} == {"plain as s"}
