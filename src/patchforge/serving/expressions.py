"""The small language of the modes table: conditions on values, and values made of other values.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

Values = Mapping[str, Any]
"""Knobs in capitals and facts in small letters; ``None`` for what is unset or not known."""

ARITHMETIC: dict[str, Callable[[list[Any]], Any]] = {"$min": min, "$sum": sum, "$product": prod}


def holds(condition: Mapping[str, Any], values: Values) -> bool:
    """True when every named value is as ``condition`` says; a value that is not known satisfies only ``set: false``."""
    return all(_one(expected, values.get(name), values) for name, expected in condition.items())


def _one(expected: Any, have: Any, values: Values) -> bool:
    if isinstance(expected, Mapping) and "set" in expected:
        return (have is not None) is bool(expected["set"])
    if have is None:
        return False
    if isinstance(expected, list):
        return any(_same(item, have) for item in expected)
    if not isinstance(expected, Mapping):
        return _same(expected, have)
    ((operator, raw),) = expected.items()
    limit = fill(raw, values)
    if limit is None:
        return False
    if operator == "above":
        return bool(have > limit)
    if operator == "below":
        return bool(have < limit)
    if operator == "contains":
        return str(limit) in str(have)
    return not _same(limit, have)


def _same(expected: Any, have: Any) -> bool:
    # True is 1 in Python, and a switch is not a number here.
    return isinstance(expected, bool) is isinstance(have, bool) and bool(expected == have)


def fill(template: Any, values: Values) -> Any:
    """``template`` with ``$NAME`` replaced by values and arithmetic done; ``None`` when a part of it is unset."""
    if isinstance(template, str) and template.startswith("$"):
        return values.get(template[1:])
    if isinstance(template, Mapping):
        if len(template) == 1 and (operator := next(iter(template))) in ARITHMETIC:
            parts = [fill(part, values) for part in template[operator]]
            return None if None in parts else ARITHMETIC[operator](parts)
        return {key: fill(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [fill(part, values) for part in template]
    return template


def names(node: Any) -> Iterator[str]:
    """Every ``$NAME`` in a template."""
    if isinstance(node, str) and node.startswith("$"):
        yield node[1:]
    elif isinstance(node, Mapping):
        for part in node.values():
            yield from names(part)
    elif isinstance(node, list):
        for part in node:
            yield from names(part)


def condition_names(condition: Mapping[str, Any]) -> Iterator[str]:
    """Every knob and fact a condition looks at."""
    for name, expected in condition.items():
        yield name
        if isinstance(expected, Mapping):
            yield from names(dict(expected))
