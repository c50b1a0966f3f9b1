"""Which landed patches may go: the verdict is necessary, and the patch's own ``Retires-when`` has the last word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patchforge.evidence.model import LANDED, Verdict
from patchforge.headers.conditions import Condition


@dataclass(frozen=True, slots=True)
class Terms:
    """What a patch's header says about its end: its condition, and the patches it requires."""

    condition: Condition
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether patch ``name`` may be dropped, and why or why not."""

    name: str
    retires: bool
    why: str


def decide(verdicts: Sequence[Verdict], terms: Mapping[str, Terms], version: Version | None) -> list[Decision]:
    """One decision for every patch that landed at high confidence.  ``version`` is the release's, where it is known.

    A patch that another one requires stays while that one stays.
    """
    by_name = {v.name: v for v in verdicts}
    candidates = [v.name for v in verdicts if v.verdict == LANDED and v.confidence == "high"]
    going = set(candidates)
    why: dict[str, str] = {}
    while True:
        stays = {}
        for name in sorted(going):
            reason = _against(name, terms, by_name, going, version)
            if reason:
                stays[name] = reason
        if not stays:
            break
        why |= stays
        going -= set(stays)
    return [Decision(n, n in going, why.get(n, by_name[n].reason)) for n in candidates]


def _against(
    name: str, terms: Mapping[str, Terms], verdicts: Mapping[str, Verdict], going: set[str], version: Version | None
) -> str:
    """Why ``name`` has to stay; empty when it may go."""
    needing = [other for other, t in terms.items() if name in t.requires and other not in going]
    if needing:
        return f"{', '.join(needing)} requires it, and stays"
    condition = terms[name].condition
    if condition.kind == "prose":
        return "its Retires-when is prose, which a person has to judge"
    said = holds(condition, verdicts, going, version)
    if said is None:
        return f"whether its Retires-when holds cannot be told: {_unknown(condition, verdicts, version)}"
    return "" if said else f"its Retires-when says otherwise: {_false(condition, verdicts, going, version)}"


def holds(
    condition: Condition, verdicts: Mapping[str, Verdict], going: set[str], version: Version | None
) -> bool | None:
    """Whether ``condition`` holds for a patch the release carries; ``None`` when that cannot be told."""
    if condition.kind in ("and", "or"):
        parts = [holds(part, verdicts, going, version) for part in condition.parts]
        decisive = condition.kind == "or"
        return decisive if decisive in parts else None if None in parts else not decisive
    if condition.kind == "carries":
        return True  # asked only of a patch whose effect the trees show in the release
    if condition.kind == "version":
        return None if version is None else SpecifierSet(condition.value, prereleases=True).contains(version)
    if condition.kind == "probe":
        verdict = verdicts.get(condition.value)
        return verdict.signals.probe if verdict is not None else None
    if condition.kind == "with":
        return condition.value in going if condition.value in verdicts else None
    return False if condition.kind == "never" else None


def _unknown(condition: Condition, verdicts: Mapping[str, Verdict], version: Version | None) -> str:
    out = []
    for atom in condition.atoms():
        if holds(atom, verdicts, set(), version) is None:
            out.append(
                "the release has no version" if atom.kind == "version" else f"no {atom.kind} '{atom.value}' to ask"
            )
    return "; ".join(out)


def _false(condition: Condition, verdicts: Mapping[str, Verdict], going: set[str], version: Version | None) -> str:
    false = [a for a in condition.atoms() if holds(a, verdicts, going, version) is False]
    return ", ".join(f"{a.kind} {a.value}".strip() for a in false)
