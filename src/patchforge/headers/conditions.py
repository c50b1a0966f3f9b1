"""``Retires-when:``, structured: a small boolean expression, and prose after `` -- ``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ATOMS = (
    ("carries", re.compile(r"carries (?:[A-Za-z0-9_.-]+ )?#(\d{1,9})\Z")),
    ("version", re.compile(r"version ((?:>=|<=|==|!=|>|<) ?[0-9][0-9A-Za-z.+!-]*)\Z")),
    ("probe", re.compile(r"probe ([A-Za-z0-9][A-Za-z0-9._+-]*)\Z")),
    ("with", re.compile(r"with ([A-Za-z0-9][A-Za-z0-9._+-]*)\Z")),
    ("never", re.compile(r"(never)\Z")),
)


@dataclass(frozen=True, slots=True)
class Condition:
    """``kind`` is ``and``, ``or`` (with ``parts``), one of the atoms (with ``value``), or ``prose``."""

    kind: str
    value: str = ""
    parts: tuple[Condition, ...] = ()

    def atoms(self) -> tuple[Condition, ...]:
        """The conditions that are not ``and``/``or``, left to right."""
        if self.kind in ("and", "or"):
            return tuple(atom for part in self.parts for atom in part.atoms())
        return (self,)


def parse_retires(value: str) -> Condition:
    """Parse a ``Retires-when`` value; plain prose gives ``Condition('prose', …)``.

    ``and`` binds tighter than ``or``.  Raises :class:`ValueError` for a value that starts like a condition and is not one.
    """
    expression = value.split(" -- ", 1)[0].strip()
    starts = any(re.match(rf"{kind}\b", expression) for kind, _ in _ATOMS)
    if not starts:
        return Condition("prose", value)
    ors = [_all(part) for part in expression.split(" or ")]
    return ors[0] if len(ors) == 1 else Condition("or", parts=tuple(ors))


def _all(text: str) -> Condition:
    ands = [_atom(part.strip()) for part in text.split(" and ")]
    return ands[0] if len(ands) == 1 else Condition("and", parts=tuple(ands))


def _atom(text: str) -> Condition:
    for kind, pattern in _ATOMS:
        match = pattern.match(text)
        if match:
            return Condition(kind, "" if kind == "never" else match.group(1).replace(" ", ""))
    raise ValueError(
        f"{text!r} is not a condition: 'carries #N', 'version >=X', 'probe NAME', 'with PATCH' or 'never', joined by "
        "'and'/'or'; write prose after ' -- '"
    )
