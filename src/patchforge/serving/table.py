"""The modes table as frozen values, read from ``modes.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from patchforge.serving.document import Document

FACTS = ("mode", "profile", "distribution", "gpus", "sm", "gpu_gib", "gpu_bytes", "gpu_used_gib", "shm_gib", "wsl2")
"""What conditions may look at besides knobs."""

Condition = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One possible default: ``value`` (a template) where ``when`` holds."""

    value: Any
    when: Condition = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """One flag or environment variable a knob becomes; ``when`` is ``None`` where it follows from the knob being on.

    ``otherwise`` takes the place of the conditions before it that did not hold; a ``switch`` has no value.
    """

    name: str
    is_flag: bool
    when: Condition | None = None
    otherwise: bool = False
    value: Any = None
    json: Any = None
    map: Mapping[str, str] = field(default_factory=dict)
    switch: bool = False


@dataclass(frozen=True, slots=True)
class Knob:
    """One control.  ``kind``: boolean, integer, number, choice, text or arguments; ``patches`` are those it needs."""

    name: str
    what: str
    kind: str
    values: tuple[str | int, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    multiple: int | None = None
    optional: bool = False
    patches: tuple[str, ...] = ()
    applies: Condition = field(default_factory=dict)
    default: tuple[Case, ...] = ()
    becomes: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A published or measured figure of a mode, and the compute capability it holds for."""

    text: str
    sm: int
    source: str


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode: what asking for it chooses, and how it is recognised; without ``when`` it is its profile's own mode."""

    name: str
    letter: str
    profile: str
    purpose: str
    choose: Mapping[str, Any] = field(default_factory=dict)
    when: Condition | None = None
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that holds of certain values.

    ``text`` says what; ``instead`` the way out; ``patches`` what is needed; ``here`` that only this machine objects.
    """

    when: Condition
    text: str
    name: str = ""
    instead: str | None = None
    patches: tuple[str, ...] = ()
    here: bool = False


@dataclass(frozen=True, slots=True)
class Security:
    """Where the key comes from, and what would go round it."""

    key: str
    key_file: str
    host: str
    port: str
    model: str
    create: str
    guard: str | None
    bypasses: tuple[str, ...]
    reserved: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Registry:
    """The dictionary in an installed file whose keys are the environment variables the package knows."""

    file: str
    name: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Table:
    """All of it.  ``always`` are outputs with a fixed value, and why."""

    modes: tuple[Mode, ...]
    knobs: tuple[Knob, ...]
    security: Security
    programs: Mapping[str, tuple[str, ...]]
    registry: Registry | None = None
    always: tuple[tuple[Output, str], ...] = ()
    conflicts: tuple[Rule, ...] = ()
    requires: tuple[Rule, ...] = ()
    notes: tuple[Rule, ...] = ()
    leftovers: tuple[str, ...] = ()

    def knob(self, name: str) -> Knob | None:
        """The knob called ``name``."""
        return next((knob for knob in self.knobs if knob.name == name), None)


def build_table(document: Document) -> Table:
    """The table of a document that :func:`patchforge.serving.check.problems_of` found nothing wrong with."""
    data = document.data
    security, registry = data["security"], data.get("registry")
    return Table(
        modes=tuple(_mode(name, entry) for name, entry in data["modes"].items()),
        knobs=tuple(build_knob(name, entry) for name, entry in data["knobs"].items()),
        security=Security(
            security["key"],
            security["key-file"],
            security["host"],
            security["port"],
            security["model"],
            security["create"],
            security.get("guard"),
            tuple(security.get("bypasses", ())),
            tuple(security["reserved"]),
        ),
        programs={name: tuple(words) for name, words in data["programs"].items()},
        registry=None if registry is None else Registry(registry["file"], registry["name"], registry["prefix"]),
        always=tuple((_output(entry), entry["why"]) for entry in data.get("always", ())),
        conflicts=tuple(
            Rule(e["when"], e["why"], e["name"], e.get("instead"), here=e.get("here", False))
            for e in data.get("conflicts", ())
        ),
        requires=tuple(
            Rule(e["when"], "", instead=e["instead"], patches=tuple(e["patches"])) for e in data.get("requires", ())
        ),
        notes=tuple(Rule(e["when"], e["text"]) for e in data.get("notes", ())),
        leftovers=tuple(data.get("leftovers", ())),
    )


def _mode(name: str, entry: Mapping[str, Any]) -> Mode:
    figures = tuple(Figure(f["text"], f["sm"], f["source"]) for f in entry.get("figures", ()))
    return Mode(
        name, entry["letter"], entry["profile"], entry["for"], entry.get("choose", {}), entry.get("when"), figures
    )


def build_knob(name: str, entry: Mapping[str, Any]) -> Knob:
    """One entry of ``knobs``."""
    default = entry.get("default")
    cases = default if isinstance(default, list) else [] if default is None else [{"value": default}]
    return Knob(
        name,
        entry["what"],
        entry["type"],
        tuple(entry.get("values", ())),
        entry.get("minimum"),
        entry.get("maximum"),
        entry.get("multiple-of"),
        entry.get("optional", False),
        tuple(entry.get("patches", ())),
        entry.get("applies", {}),
        tuple(Case(case["value"], case.get("when", {})) for case in cases),
        tuple(_output(output) for output in entry.get("becomes", ())),
    )


def _output(entry: Mapping[str, Any]) -> Output:
    return Output(
        entry.get("flag") or entry["env"],
        "flag" in entry,
        entry.get("when"),
        entry.get("otherwise", False),
        entry.get("value"),
        entry.get("json"),
        entry.get("map", {}),
        entry.get("switch", False),
    )
