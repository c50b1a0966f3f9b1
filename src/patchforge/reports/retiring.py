"""The report of ``retire-scan``."""

from __future__ import annotations

from typing import Any

from patchforge.errors import Problem
from patchforge.evidence.model import KEEP, LANDED, Verdict
from patchforge.reports.model import Block, Cell, Grid, Line, Report, plural

_STYLES = {"keep": "dim", "landed": "good", "conflict": "bad", "partial": "warn", "landed-changed": "warn"}


def scan_report(found: dict[str, list[Verdict]], fail_on: list[str], explain: str | None) -> Report:
    """One entry per patch and release; ``fail_on`` verdicts make the status 1."""
    patches: list[dict[str, Any]] = []
    blocks: list[Block] = []
    problems: list[Problem] = []
    for target, verdicts in found.items():
        patches += [_document(target, verdict) for verdict in verdicts]
        rows = tuple(
            (
                Cell(v.name),
                Cell(v.verdict, _STYLES.get(v.verdict, "")),
                Cell(v.confidence, "dim"),
                Cell(v.reason, "dim"),
            )
            for v in verdicts
        )
        blocks.append(Grid(("patch", "verdict", "confidence", "because"), rows, title=f"against {target}"))
        landed = sum(v.verdict == LANDED and v.confidence == "high" for v in verdicts)
        kept = sum(v.verdict == KEEP for v in verdicts)
        blocks.append(
            Line(
                f"{target}: {plural(landed, 'patch', 'patches')} can go, {kept} stay, {len(verdicts) - landed - kept} to look at"
            )
        )
        for verdict in verdicts:
            if verdict.verdict in fail_on:
                text = f"{verdict.name}: {verdict.verdict} in {target} ({verdict.confidence}): {verdict.reason}"
                problems.append(Problem(text, None, None, None, verdict.verdict, patch=verdict.name))
            if explain is not None and explain.removesuffix(".patch") == verdict.name.removesuffix(".patch"):
                blocks += _explained(verdict)
    return Report(
        "retire-scan", 1 if problems else 0, tuple(patches), {"targets": list(found)}, tuple(blocks), tuple(problems)
    )


def _document(target: str, verdict: Verdict) -> dict[str, Any]:
    s = verdict.signals
    return {
        "name": verdict.name,
        "result": verdict.verdict,
        "target": target,
        "verdict": verdict.verdict,
        "confidence": verdict.confidence,
        "reason": verdict.reason,
        "signals": {
            "forward": s.forward,
            "reverse": s.reverse,
            "merge": s.merge,
            "lines": s.lines,
            "probe": s.probe,
            "units": [{"name": u.name, "state": u.state, "old": u.old, "new": u.new} for u in s.units],
        },
        "evidence": [{"old": old, "new": new} for old, new in verdict.evidence],
    }


def _explained(verdict: Verdict) -> list[Block]:
    s = verdict.signals
    words = {True: "yes", False: "no", None: "it has none"}
    facts = (
        ("applies to the release", words[s.forward] + (f" ({s.why})" if s.why else "")),
        ("comes off the release", words[s.reverse]),
        ("merging it", s.merge),
        ("its lines are there, the removed ones gone", words[s.lines]),
        ("its probe holds on the release", words[s.probe]),
    )
    blocks: list[Block] = [Line(f"{verdict.name}: {verdict.verdict} ({verdict.confidence})", "head")]
    blocks += [Line(f"  {what}: {said}") for what, said in facts]
    blocks += [Line(f"  {u.name}: {u.state}  {u.old} -> {u.new or 'nowhere'}") for u in s.units]
    return blocks
