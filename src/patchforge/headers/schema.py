"""Checking a header against ``headers.schema.yaml``.

The schema is given as a parsed document: reading it is the caller's.  jsonschema is imported here and only when a header
must really be checked, because importing it costs more than the rest of a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchforge.errors import Problem
from patchforge.headers.conditions import parse_retires
from patchforge.headers.filler import is_filler
from patchforge.headers.paragraph import Header, is_credit
from patchforge.headers.upstream import parse_upstream


class HeaderChecker:
    """Checks many headers against one schema document."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from jsonschema import Draft202012Validator

        Draft202012Validator.check_schema(schema)
        self._validator = Draft202012Validator(schema)
        self._known = list(schema.get("properties", {}))
        self._about = {key: str(value.get("description", "")) for key, value in schema.get("properties", {}).items()}

    def check(self, header: Header, patch: str, known_patches: frozenset[str] | None = None) -> list[Problem]:
        """Every problem of ``header``, in line order; an empty list means it is valid."""
        problems = []
        meant: set[str] = set()  # a key that was mistyped is not also missing
        for field in header.fields:
            if field.key not in self._known and not is_credit(field.key):
                near = self._nearest(field.key)
                meant |= {near} if near else set()
                hint = f"did you mean '{near}'?" if near else f"known keys: {', '.join(self._known)}"
                problems.append(Problem(f"unknown header '{field.key}'", patch, field.line, hint, "header"))
        document = {field.key: field.value for field in header.fields if field.key in self._known}
        for error in self._validator.iter_errors(document):
            if error.validator != "required" or not any(f"'{key}'" in error.message for key in meant):
                problems.append(self._problem(error, header, patch))
        if is_filler(header.preamble):
            problems.append(
                Problem("the text is still that of the template", patch, 1, "say why the patch exists", "header")
            )
        if not problems:
            problems.extend(_semantics(header, patch, known_patches))
        return sorted(problems, key=lambda problem: problem.line or 0)

    def _nearest(self, key: str) -> str | None:
        folded = {known.casefold(): known for known in self._known}
        near = _near(key.casefold(), list(folded), n=1, cutoff=0.5)
        return folded[near[0]] if near else None

    def _problem(self, error: Any, header: Header, patch: str) -> Problem:
        if error.validator == "required":
            key = next((k for k in error.validator_value if f"'{k}'" in error.message), "?")
            kind = header.get("Kind")
            why = " (a patch of kind 'own' names what it mends)" if key == "Requires" and kind == "own" else ""
            return Problem(
                f"the header has no '{key}'{why}", patch, header.line, self._about.get(key) or None, "header"
            )
        key = str(error.path[0]) if error.path else "?"
        value = header.get(key)
        line = header.line_of(key)
        if error.validator == "enum":
            choices = [str(choice) for choice in error.validator_value]
            near = _near(value, choices, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"one of: {', '.join(choices)}"
            return Problem(f"{key}: {value!r} is not allowed", patch, line, hint, "header")
        if error.validator in ("minLength", "maxLength"):
            word, most = ("short", "at least") if error.validator == "minLength" else ("long", "at most")
            message = f"{key}: {value!r} is too {word}: {most} {error.validator_value} characters"
            return Problem(message, patch, line, self._about.get(key), "header")
        if error.validator == "not":
            return Problem(f"{key}: a backport must name what it carries", patch, line, self._about.get(key), "header")
        return Problem(f"{key}: {value!r} has the wrong form", patch, line, self._about.get(key) or None, "header")


def _semantics(header: Header, patch: str, known_patches: frozenset[str] | None) -> list[Problem]:
    problems = []
    parsers = (("Upstream", parse_upstream), ("Retires-when", parse_retires))
    for key, parse in parsers:
        try:
            parse(header.get(key))
        except ValueError as error:
            problems.append(Problem(f"{key}: {error}", patch, header.line_of(key), None, "header"))
    if known_patches is not None:
        for key in ("Requires", "Supersedes"):
            for name in header.names(key):
                if name not in known_patches:
                    near = _near(name, sorted(known_patches), n=1)
                    hint = f"did you mean '{near[0]}'?" if near else f"take it out of {key}, if it was dropped"
                    problems.append(
                        Problem(f"{key}: no patch '{name}' in the series", patch, header.line_of(key), hint, "header")
                    )
    return problems


def _near(word: str, known: list[str], n: int = 1, cutoff: float = 0.6) -> list[str]:
    import difflib

    return difflib.get_close_matches(word, known, n=n, cutoff=cutoff)
