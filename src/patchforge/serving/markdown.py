"""Modes and knobs as Markdown tables, for the documentation and ``serve --knobs``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from patchforge.serving.table import Case, Knob, Output, Table
from patchforge.serving.values import allowed, show


def table_lines(table: Table) -> list[str]:
    """Three tables: the modes, the knobs, and what does not go together."""
    lines = ["| mode | | profile | for | chosen by |", "| --- | --- | --- | --- | --- |"]
    for mode in table.modes:
        by = ", ".join(f"`{name}={show(value)}`" for name, value in mode.choose.items())
        lines.append(f"| `{mode.name}` | {mode.letter} | {mode.profile} | {mode.purpose} | {by} |")
    lines += ["", "| knob | what | values | default | becomes |", "| --- | --- | --- | --- | --- |"]
    for knob in table.knobs:
        what = knob.what + "".join(f" Needs `{name}`." for name in knob.patches)
        if knob.applies:
            what += f" Only with {_condition(knob.applies)}."
        becomes = "<br>".join(_output(output) for output in knob.becomes)
        lines.append(_row(f"`{knob.name}`", what, allowed(knob), _default(knob), becomes))
    lines += ["", "| refused | because | instead |", "| --- | --- | --- |"]
    for rule in table.conflicts:
        lines.append(_row(_condition(rule.when), rule.text, rule.instead or ""))
    for rule in table.requires:
        text = "needs the patch " + ", ".join(f"`{name}`" for name in rule.patches)
        lines.append(_row(_condition(rule.when), text, rule.instead or ""))
    return lines


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(knob: Knob) -> str:
    return "<br>".join(_case(case) for case in knob.default)


def _case(case: Case) -> str:
    value = f"`{_template(case.value)}`"
    return f"{value} with {_condition(case.when)}" if case.when else value


def _template(value: Any) -> str:
    if isinstance(value, Mapping):
        ((operator, parts),) = value.items()
        shown = [_template(part) for part in parts]
        word = operator.removeprefix("$")
        return (
            f"({' + '.join(shown)})"
            if word == "sum"
            else f"{' · '.join(shown)}"
            if word == "product"
            else f"{word}({', '.join(shown)})"
        )
    return value.removeprefix("$") if isinstance(value, str) else show(value)


def _condition(condition: Mapping[str, Any]) -> str:
    return ", ".join(_term(name, expected) for name, expected in condition.items())


def _term(name: str, expected: Any) -> str:
    if isinstance(expected, list):
        return f"`{name}` " + " or ".join(f"`{show(item)}`" for item in expected)
    if not isinstance(expected, Mapping):
        return f"`{name}={show(expected)}`"
    ((operator, value),) = expected.items()
    if operator == "set":
        return f"`{name}` {'set' if value else 'unset'}"
    words = {"above": "above", "below": "below", "contains": "with", "not": "other than"}
    return f"`{name}` {words[operator]} `{_template(value)}`"


def _output(output: Output) -> str:
    value = ""
    if output.json is not None:
        value = json.dumps(output.json)
    elif output.value is not None:
        value = _template(output.value)
    text = f"{output.name}{' ' if output.is_flag else '='}{value}" if value else output.name
    if output.otherwise:
        return f"`{text}` otherwise"
    return f"`{text}` with {_condition(output.when)}" if output.when else f"`{text}`"
