"""The reports of ``retire-scan`` and ``radar``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from patchforge.errors import Problem
from patchforge.evidence.model import CHANGED, CONFLICT, KEEP, LANDED, PARTIAL, REVERTED, SUPERSEDED, UNKNOWN, Verdict
from patchforge.evidence.retire import Decision
from patchforge.releases.contents import Cost
from patchforge.reports.model import Block, Cell, Grid, Line, Report, plural
from patchforge.reports.pulling import pulls_document, pulls_facts, pulls_grid

_STYLES = {KEEP: "dim", LANDED: "good", CONFLICT: "bad", UNKNOWN: "bad"}
_WORDS = {
    LANDED: "lands",
    CHANGED: "changed",
    PARTIAL: "partly",
    REVERTED: "reverted",
    CONFLICT: "breaks",
    SUPERSEDED: "superseded",
    UNKNOWN: "unknown",
}


class Judged:
    """One release with its verdicts: what a scan found, as the reports need it."""

    def __init__(
        self, target: str, verdicts: Sequence[Verdict], cost: Cost | None = None, lost: Sequence[str] = ()
    ) -> None:
        self.target, self.verdicts, self.cost, self.lost = target, verdicts, cost, lost


def scan_report(
    found: Sequence[Judged],
    fail_on: Sequence[str],
    explained: Sequence[Block] = (),
    decisions: Sequence[Decision] | None = None,
    removed: Sequence[str] = (),
) -> Report:
    """One entry per patch and release; ``fail_on`` verdicts make the status 1.

    ``decisions`` are those of ``--write``, and ``removed`` the names of the patches that went.
    """
    patches: list[dict[str, Any]] = []
    blocks: list[Block] = []
    problems: list[Problem] = []
    decided = {d.name: d for d in decisions or ()}
    for one in found:
        patches += [_document(one.target, v, decided.get(v.name)) for v in one.verdicts]
        rows = tuple(
            (
                Cell(v.name),
                Cell(v.verdict, _STYLES.get(v.verdict, "warn")),
                Cell(v.confidence, "dim"),
                Cell(v.reason, "dim"),
            )
            for v in one.verdicts
        )
        blocks.append(Grid(("patch", "verdict", "confidence", "because"), rows, title=f"against {one.target}"))
        landed = sum(v.verdict == LANDED and v.confidence == "high" for v in one.verdicts)
        kept = sum(v.verdict in (KEEP, REVERTED) for v in one.verdicts)
        look = len(one.verdicts) - landed - kept
        blocks.append(
            Line(f"{one.target}: {plural(landed, 'patch', 'patches')} can go, {kept} stay, {look} to look at")
        )
        blocks += _lost(one)
        blocks += pulls_grid(one.target, one.verdicts)
        for verdict in one.verdicts:
            if verdict.verdict in fail_on:
                text = f"{verdict.name}: {verdict.verdict} in {one.target} ({verdict.confidence}): {verdict.reason}"
                problems.append(Problem(text, None, None, None, verdict.verdict, patch=verdict.name))
    blocks += explained
    if decisions is not None:
        blocks += _decided(decisions, removed)
    fields: dict[str, Any] = {"targets": [_target(one) for one in found]}
    if decisions is not None:
        fields["removed"] = list(removed)
    notes = tuple(note for one in found for note in _costs(one))
    return Report("retire-scan", 1 if problems else 0, tuple(patches), fields, tuple(blocks), tuple(problems), notes)


def _target(one: Judged) -> dict[str, Any]:
    out: dict[str, Any] = {"name": one.target}
    if one.cost is not None:
        out |= {"fetched": one.cost.fetched, "wheel": one.cost.whole}
    if one.lost:
        out["lost"] = list(one.lost)
    return out


def _costs(one: Judged) -> list[str]:
    if one.cost is None:
        return []
    share = 100 * one.cost.fetched / one.cost.whole if one.cost.whole else 0
    return [
        f"{one.target}: read {one.cost.fetched / 1e6:.2f} MB of a wheel of {one.cost.whole / 1e6:.0f} MB ({share:.2f}%)"
    ]


def _lost(one: Judged) -> list[Block]:
    if not one.lost:
        return []
    shown = [Line(f"  {text}", "warn") for text in one.lost[:20]]
    more = [Line(f"  and {len(one.lost) - 20} more")] if len(one.lost) > 20 else []
    return [Line(f"{one.target} lacks {plural(len(one.lost), 'change')} that the pin has:", "warn"), *shown, *more]


def _decided(decisions: Sequence[Decision], removed: Sequence[str]) -> list[Block]:
    out: list[Block] = []
    for decision in decisions:
        if decision.name in removed:
            out.append(Line(f"retired {decision.name}", "good"))
        else:
            out.append(Line(f"kept {decision.name}: {decision.why}", "warn"))
    if not decisions:
        out.append(Line("no patch landed at high confidence: nothing was changed", "dim"))
    return out


def _document(target: str, verdict: Verdict, decision: Decision | None) -> dict[str, Any]:
    s = verdict.signals
    signals: dict[str, Any] = {
        "forward": s.forward,
        "offset": s.offset,
        "reverse": s.reverse,
        "merge": s.merge,
        "lines": s.lines,
        "probe": s.probe,
        "lost": list(s.lost),
        "searched": s.searched,
        "units": [{"name": u.name, "state": u.state, "old": u.old, "new": u.new} for u in s.units],
    }
    if s.past is not None:
        signals["history"] = {
            "carries": s.past.carries or None,
            "reverted": s.past.reverted or None,
            "later": list(s.past.later),
        }
    if s.pulls is not None:
        signals["pulls"] = pulls_document(verdict)
    out: dict[str, Any] = {
        "name": verdict.name,
        "result": verdict.verdict,
        "target": target,
        "verdict": verdict.verdict,
        "confidence": verdict.confidence,
        "reason": verdict.reason,
        "signals": signals,
        "evidence": [{"old": old, "new": new} for old, new in verdict.evidence],
    }
    if decision is not None:
        out["retires"] = {"allowed": decision.retires, "why": decision.why}
    return out


def explained(target: str, verdict: Verdict, shown: Mapping[str, tuple[list[str], list[str]]]) -> list[Block]:
    """The reasoning for one patch; ``shown`` has, by unit, the lines of ours and of upstream's."""
    s = verdict.signals
    words = {True: "yes", False: "no", None: "it has none"}
    facts = [
        ("applies to the release", words[s.forward] + (f" ({s.why})" if s.why else "")),
        ("comes off the release", words[s.reverse]),
        ("merging it", s.merge),
        ("its lines are there, the removed ones gone", words[s.lines]),
        ("its probe holds on the release", words[s.probe]),
    ]
    if s.past is not None:
        facts.append(("the release carries its upstream change", s.past.carries or "no"))
        facts.append(("upstream took it back", s.past.reverted or "no"))
    facts += pulls_facts(verdict)
    blocks: list[Block] = [
        Line(f"{verdict.name} against {target}: {verdict.verdict} ({verdict.confidence})", "head"),
        Line(f"  {verdict.reason}"),
        *(Line(f"  {what}: {said}") for what, said in facts),
    ]
    for unit in s.units:
        blocks.append(Line(f"  {unit.name}: {unit.state}  {unit.old} -> {unit.new or 'nowhere'}"))
        ours, theirs = shown.get(unit.name, ([], []))
        if unit.state in ("other", "old", "patched") and (ours or theirs):
            blocks += [Line(f"    ours      {text}", "add") for text in ours]
            blocks += [Line(f"    upstream  {text}", "dim") for text in theirs]
    return blocks


def radar_report(found: Sequence[Judged], fail_on: Sequence[str]) -> Report:
    """The matrix patch by release, and the first release where each patch moves, lands or breaks."""
    targets = [one.target for one in found]
    names = [v.name for v in found[0].verdicts] if found else []
    rows, patches, problems = [], [], []
    for number, name in enumerate(names):
        verdicts = [one.verdicts[number] for one in found]
        words = [word(v) for v in verdicts]
        first = {
            kind: next((t for t, w in zip(targets, words, strict=True) if w in group), None)
            for kind, group in (
                ("offset", ("offset",)),
                ("lands", ("lands",)),
                ("breaks", ("breaks", "superseded", "changed", "partly", "unknown")),
            )
        }
        styles = {"applies": "dim", "lands": "good", "offset": "", "reverted": "dim"}
        cells = [Cell(w, styles.get(w, "bad" if w == "breaks" else "warn")) for w in words]
        rows.append((Cell(name), *cells))
        patches.append(
            {
                "name": name,
                "result": words[-1],
                "releases": [
                    {"target": t, "result": w, "verdict": v.verdict, "confidence": v.confidence, "reason": v.reason}
                    for t, w, v in zip(targets, words, verdicts, strict=True)
                ],
                "first": first,
            }
        )
        for target, verdict in zip(targets, verdicts, strict=True):
            if verdict.verdict in fail_on:
                text = f"{name}: {verdict.verdict} in {target} ({verdict.confidence}): {verdict.reason}"
                problems.append(Problem(text, None, None, None, verdict.verdict, patch=name))
    blocks: list[Block] = [Grid(("patch", *targets), tuple(rows))]
    for one in found:
        words = [word(v) for v in one.verdicts]
        counts = [f"{words.count(w)} {w}" for w in dict.fromkeys(words)]
        blocks.append(Line(f"{one.target}: {', '.join(counts)}"))
        blocks += _lost(one)
    notes = tuple(note for one in found for note in _costs(one))
    fields = {"targets": [_target(one) for one in found]}
    return Report("radar", 1 if problems else 0, tuple(patches), fields, tuple(blocks), tuple(problems), notes)


def word(verdict: Verdict) -> str:
    """A verdict as the matrix shows it."""
    if verdict.verdict == KEEP:
        return "offset" if verdict.signals.offset else "applies"
    return _WORDS[verdict.verdict]
