"""Which landed patches may go: the conditions of their headers, one by one and together."""

from __future__ import annotations

import itertools

import pytest
from packaging.version import Version

from patchforge.evidence.model import Signals, Verdict
from patchforge.evidence.retire import Terms, decide
from patchforge.headers.conditions import parse_retires


def verdict(name: str, word: str = "landed", confidence: str = "high", probe: bool | None = None) -> Verdict:
    return Verdict(name, word, confidence, "it comes off", Signals(False, True, "no-op", (), True, probe))


def going(
    terms: dict[str, tuple[str, tuple[str, ...]]], *verdicts: Verdict, version: str | None = "1.1"
) -> dict[str, str]:
    """By name of what landed: empty when it goes, else why not."""
    parsed = {name: Terms(parse_retires(text), requires) for name, (text, requires) in terms.items()}
    decisions = decide(verdicts, parsed, Version(version) if version else None)
    assert [d.name for d in decisions] == [v.name for v in verdicts if (v.verdict, v.confidence) == ("landed", "high")]
    return {d.name: "" if d.retires else d.why for d in decisions}


@pytest.mark.parametrize(
    ("text", "version", "why"),
    [
        ("carries #12", "1.1", ""),
        ("carries #12", None, ""),
        ("version >=1.1", "1.1", ""),
        ("version >=1.1", "1.1rc1", "says otherwise: version >=1.1"),
        ("version >=1.2", "1.1", "says otherwise: version >=1.2"),
        ("version >=1.2", None, "cannot be told: the release has no version"),
        ("never", "1.1", "says otherwise: never"),
        ("when upstream wakes up", "1.1", "a person has to judge"),
        ("carries #12 and version >=1.2", "1.1", "says otherwise: version >=1.2"),
        ("carries #12 or version >=1.2", "1.1", ""),
        ("version >=1.2 or version >=1.1", "1.1", ""),
        ("version >=1.2 and version >=1.1", None, "cannot be told"),
    ],
)
def test_a_condition(text: str, version: str | None, why: str) -> None:
    (said,) = going({"p": (text, ())}, verdict("p"), version=version).values()
    assert (said == "") == (why == "")
    assert why in said


def test_only_landed_at_high_confidence_is_asked() -> None:
    terms = dict.fromkeys("abc", ("carries #12", ()))
    assert going(terms, verdict("a", "landed", "medium"), verdict("b", "landed-changed"), verdict("c")) == {"c": ""}


@pytest.mark.parametrize(
    ("probe", "why"), [(True, ""), (False, "says otherwise: probe q"), (None, "no probe 'q' to ask")]
)
def test_the_probe_of_another(probe: bool | None, why: str) -> None:
    terms = {"p": ("probe q", ()), "q": ("never", ())}
    said = going(terms, verdict("p"), verdict("q", "keep", probe=probe))["p"]
    assert (said == "") == (why == "") and why in said


def test_with_another_only_together() -> None:
    terms = {"p": ("with q", ()), "q": ("carries #12", ())}
    assert going(terms, verdict("p"), verdict("q")) == {"p": "", "q": ""}
    assert "says otherwise: with q" in going(terms, verdict("p"), verdict("q", "keep"))["p"]
    terms["q"] = ("never", ())
    found = going(terms, verdict("p"), verdict("q"))
    assert "with q" in found["p"] and "never" in found["q"]
    assert "no with 'z' to ask" in going({"p": ("with z", ())}, verdict("p"))["p"]


def test_what_another_needs_stays_with_it() -> None:
    terms = {"base": ("carries #1", ()), "mid": ("carries #2", ("base",)), "top": ("carries #3", ("mid",))}
    landed = [verdict(n) for n in terms]
    assert going(terms, *landed) == {"base": "", "mid": "", "top": ""}
    found = going(terms, landed[0], landed[1], verdict("top", "keep"))
    assert found["mid"] == "top requires it, and stays"
    assert found["base"] == "mid requires it, and stays"


def test_the_order_of_the_series_decides_nothing() -> None:
    terms = {"a": ("with b", ()), "b": ("with c", ()), "c": ("version >=9", ()), "d": ("carries #1", ("a",))}
    for names in itertools.permutations(terms):
        found = going(terms, *(verdict(n) for n in names))
        assert {n for n, why in found.items() if not why} == {"d"}
