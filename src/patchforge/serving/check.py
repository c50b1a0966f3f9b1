"""Checking a modes document: its form against ``modes.schema.yaml``, and that what it names exists.

jsonschema is imported here and only when a document must be checked: the one that ships is checked by the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from patchforge.errors import Problem
from patchforge.serving.document import Document, Place
from patchforge.serving.expressions import condition_names, names
from patchforge.serving.table import FACTS, build_knob
from patchforge.serving.values import WrongValue, nearest, parse_value, show


def problems_of(document: Document, schema: Mapping[str, Any]) -> list[Problem]:
    """Everything wrong with ``document``, in line order; with a wrong form nothing further is looked at."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
    wrong = [_problem(document, error) for error in Draft202012Validator(schema).iter_errors(document.data)]
    found = wrong or list(_meaning(document))
    return sorted(set(found), key=lambda problem: (problem.line or 0, problem.message))


def _problem(document: Document, error: Any) -> Problem:
    """The deepest cause of a schema error, at its line."""
    while error.context:
        error = max(error.context, key=lambda e: (len(e.absolute_path), e.validator not in ("type", "const")))
    place: Place = tuple(error.absolute_path)
    where = ".".join(str(part) for part in place) or "the document"
    hint = error.schema.get("description") if isinstance(error.schema, Mapping) else None
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = list(error.schema.get("properties", {}))
        extra = [key for key in error.instance if key not in known]
        if extra and known:
            near = nearest(str(extra[0]), known)
            hint = f"did you mean '{near}'?" if near else f"known: {', '.join(known)}"
            line = document.line((*place, str(extra[0])))
            return Problem(f"{where}: unknown key '{extra[0]}'", document.label, line, hint, "modes")
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return Problem(f"{where}: '{missing[0]}' is missing", document.label, document.line(place), hint, "modes")
    if error.validator == "enum":
        near = nearest(str(error.instance), [str(value) for value in error.validator_value])
        hint = f"did you mean '{near}'?" if near else f"one of: {', '.join(map(str, error.validator_value))}"
    text = f"{where}: {error.instance!r} is not allowed here ({error.validator} {error.validator_value!r})"
    if error.validator in ("oneOf", "anyOf", "not", "minProperties", "maxProperties", "if"):
        text = f"{where}: the wrong form ({error.validator})"
    return Problem(text[:300], document.label, document.line(place), hint, "modes")


def _meaning(document: Document) -> Iterator[Problem]:
    data = document.data
    knobs: Mapping[str, Any] = data["knobs"]
    known = [*knobs, *FACTS]

    def unknown(name: str, place: Place, allowed: list[str]) -> Iterator[Problem]:
        if name in allowed:
            return
        where, line = ".".join(str(part) for part in place), document.line(place)
        if name in known:
            yield Problem(
                f"{where}: looks at {name}, which is decided later",
                document.label,
                line,
                "move the knob below the ones it looks at",
                "modes",
            )
            return
        # Knobs are in capitals and facts in small letters, and one is not meant for the other.
        near = nearest(name, [k for k in known if k.isupper() == name.isupper()])
        hint = f"did you mean '{near}'?" if near else f"facts: {', '.join(FACTS)}"
        yield Problem(f"{where}: no knob or fact '{name}'", document.label, line, hint, "modes")

    above = list(FACTS)
    for name, knob in knobs.items():
        place: Place = ("knobs", name)
        for used in condition_names(knob.get("applies", {})):
            yield from unknown(used, (*place, "applies"), above)
        default = knob.get("default")
        for number, case in enumerate(default if isinstance(default, list) else []):
            for used in (*condition_names(case.get("when", {})), *names(case["value"])):
                yield from unknown(used, (*place, "default", number), above)
        for number, output in enumerate(knob.get("becomes", ())):
            parts = (*condition_names(output.get("when", {})), *names(output.get("value")), *names(output.get("json")))
            for used in parts:
                yield from unknown(used, (*place, "becomes", number), known)
            strange = [key for key in output.get("map", {}) if key not in knob.get("values", ())]
            lacking = [value for value in knob.get("values", ()) if "map" in output and value not in output["map"]]
            for value in (*strange, *lacking):
                yield Problem(
                    f"knobs.{name}: '{value}' is not both a value and in the map",
                    document.label,
                    document.line((*place, "becomes", number)),
                    None,
                    "modes",
                )
        above.append(name)
        yield from _defaults(document, name, knob)
    for section in ("conflicts", "requires", "notes"):
        for number, rule in enumerate(data.get(section, ())):
            for used in condition_names(rule["when"]):
                yield from unknown(used, (section, number, "when"), known)
    yield from _modes(document, unknown, known)
    for distribution, words in data["programs"].items():
        for used in names(list(words)):
            yield from unknown(used, ("programs", distribution), known)
    for key in ("key-file", "host", "port", "model"):
        yield from unknown(data["security"][key], ("security", key), list(knobs))


def _modes(document: Document, unknown: Any, known: list[str]) -> Iterator[Problem]:
    own: dict[str, str] = {}
    letters: dict[str, str] = {}
    modes = document.data["modes"]
    for name, mode in modes.items():
        for used in (*mode.get("choose", {}), *condition_names(mode.get("when", {}))):
            yield from unknown(used, ("modes", name), known)
        if "when" not in mode:
            if mode["profile"] in own:
                text = f"modes.{name}: {own[mode['profile']]} is the profile's own mode already; this one needs 'when'"
                yield Problem(text, document.label, document.line(("modes", name)), None, "modes")
            own[mode["profile"]] = name
        if mode["letter"] in letters:
            text = f"modes.{name}: the letter {mode['letter']} is that of {letters[mode['letter']]}"
            yield Problem(text, document.label, document.line(("modes", name, "letter")), None, "modes")
        letters[mode["letter"]] = name
    for name, mode in modes.items():
        if mode["profile"] not in own:
            text = f"modes.{name}: the profile {mode['profile']} has no mode without 'when'"
            yield Problem(text, document.label, document.line(("modes", name, "profile")), None, "modes")


def _defaults(document: Document, name: str, knob: Mapping[str, Any]) -> Iterator[Problem]:
    """A default, or what a mode chooses, must be a value that could be typed."""
    default = knob.get("default")
    cases: list[tuple[Place, Any]] = [(("knobs", name, "default"), default)]
    if isinstance(default, list):
        cases = [(("knobs", name, "default", number), case["value"]) for number, case in enumerate(default)]
    for mode, entry in document.data["modes"].items():
        cases.append((("modes", mode, "choose"), entry.get("choose", {}).get(name)))
    for place, value in cases:
        if value is None or isinstance(value, Mapping) or str(value).startswith("$"):
            continue
        try:
            parse_value(build_knob(name, knob), show(value))
        except WrongValue as error:
            text = f"{'.'.join(map(str, place))}: {error}"
            yield Problem(text, document.label, document.line(place), error.hint, "modes")
