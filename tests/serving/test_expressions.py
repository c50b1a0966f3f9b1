"""The language of conditions and templates, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from patchforge.serving.expressions import condition_names, fill, holds, names

VALUES: dict[str, Any] = {"A": 3, "B": True, "C": "long", "D": None, "E": False, "size": 2.5, "ZERO": 0}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, True),
        ({"A": 3}, True),
        ({"A": 4}, False),
        ({"A": 3, "C": "long"}, True),
        ({"A": 3, "C": "fast"}, False),
        ({"C": ["fast", "long"]}, True),
        ({"C": ["fast"]}, False),
        # A switch is not a number, though Python says that True == 1.
        ({"B": True}, True),
        ({"B": 1}, False),
        ({"E": 0}, False),
        ({"ZERO": False}, False),
        ({"A": {"above": 2}}, True),
        ({"A": {"above": 3}}, False),
        ({"A": {"below": 4}}, True),
        ({"A": {"below": 3}}, False),
        ({"A": {"above": "$size"}}, True),
        ({"A": {"above": {"$sum": ["$size", 1]}}}, False),
        ({"C": {"contains": "on"}}, True),
        ({"C": {"contains": "x"}}, False),
        ({"C": {"not": "fast"}}, True),
        ({"C": {"not": "long"}}, False),
        # What is unset or not known satisfies nothing but that it is unset.
        ({"D": {"set": False}}, True),
        ({"D": {"set": True}}, False),
        ({"A": {"set": True}}, True),
        ({"E": {"set": True}}, True),
        ({"D": {"not": "x"}}, False),
        ({"D": {"above": 0}}, False),
        ({"nothing": {"below": 9}}, False),
        ({"A": {"above": "$nothing"}}, False),
        ({"A": {"below": {"$product": ["$D", 9]}}}, False),
    ],
)
def test_conditions(condition: dict[str, Any], expected: bool) -> None:
    assert holds(condition, VALUES) is expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", "plain"),
        ("$A", 3),
        ("$nothing", None),
        ({"$min": [64, {"$product": ["$A", {"$sum": ["$A", 1]}]}]}, 12),
        ({"$min": [8, {"$product": ["$A", 4]}]}, 8),
        ({"$sum": ["$A", "$D"]}, None),
        ({"a": "$A", "b": ["$C", {"c": "$B"}]}, {"a": 3, "b": ["long", {"c": True}]}),
    ],
)
def test_templates(template: Any, expected: Any) -> None:
    assert fill(template, VALUES) == expected


def test_names() -> None:
    assert list(names({"a": ["$X", {"$sum": ["$Y", 1]}], "b": "Z"})) == ["X", "Y"]
    assert list(condition_names({"A": 1, "b": {"above": {"$sum": ["$C", 1]}}})) == ["A", "b", "C"]
