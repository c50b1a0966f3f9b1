"""From resolved values to the flags and environment variables the server is started with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patchforge.errors import InputError
from patchforge.serving.expressions import fill, holds
from patchforge.serving.installed import Installed
from patchforge.serving.table import Knob, Output, Table
from patchforge.serving.values import nearest, show


@dataclass(frozen=True, slots=True)
class Outputs:
    """``owner`` says which knob an environment variable belongs to; ``unset`` are names the server must not see."""

    program: tuple[str, ...]
    flags: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    unset: tuple[str, ...]
    owner: Mapping[str, str]


def outputs_of(
    table: Table, knobs: tuple[Knob, ...], values: Mapping[str, Any], environ: Mapping[str, str], installed: Installed
) -> Outputs:
    """Everything that ``values`` become.  Raises :class:`InputError` for a distribution the table cannot start."""
    flags: list[str] = []
    env: dict[str, str] = {}
    owner = {output.name: knob.name for knob in knobs for output in knob.becomes if not output.is_flag}
    for output, _ in table.always:
        if output.is_flag:
            flags += [output.name, str(output.value)]
        elif not environ.get(output.name):
            env[output.name] = str(output.value)
    for knob in knobs:
        for output in chosen(knob, values):
            text = text_of(knob, output, values)
            if output.is_flag:
                flags += [output.name] if text is None else [output.name, text]
            else:
                env[output.name] = "1" if text is None else text
    controls = {knob.name for knob in knobs} - set(env)
    # A switch that is off is unset, never empty: some readers take an empty value for a wrong one.
    empty = {name for name, value in environ.items() if not value and (name in owner or _registered(table, name))}
    unset = sorted((controls | empty) - set(env))
    return Outputs(_program(table, values, installed), tuple(flags), tuple(env.items()), tuple(unset), owner)


def _registered(table: Table, name: str) -> bool:
    return table.registry is not None and name.startswith(table.registry.prefix)


def chosen(knob: Knob, values: Mapping[str, Any]) -> list[Output]:
    """The outputs of ``knob`` that hold."""
    value = values.get(knob.name)
    if value is None:
        return []
    found: list[Output] = []
    for output in knob.becomes:
        if output.otherwise:
            take = not found
        elif output.when is not None:
            take = holds(output.when, values)
        else:
            take = value is not False and value != "off"
        if take:
            found.append(output)
    return found


def text_of(knob: Knob, output: Output, values: Mapping[str, Any]) -> str | None:
    """The value of one flag or variable; ``None`` for a switch, which has none."""
    value = values[knob.name]
    if output.json is not None:
        return json.dumps(fill(output.json, values))
    if output.value is not None:
        return show(fill(output.value, values))
    if output.map:
        return output.map[str(value)]
    if output.switch or isinstance(value, bool):
        return None
    return show(value)


def _program(table: Table, values: Mapping[str, Any], installed: Installed) -> tuple[str, ...]:
    words = table.programs.get(installed.distribution)
    if words is None:
        known = list(table.programs)
        near = nearest(installed.distribution, known)
        raise InputError(
            f"the table does not say how {installed.distribution} is started",
            reason="modes",
            hint=f"it knows {', '.join(known)}" + (f"; did you mean '{near}'?" if near else ""),
        )
    return tuple(show(fill(word, values)) for word in words)
