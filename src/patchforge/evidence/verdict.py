"""From signals to a verdict.  Precision first: a wrong 'landed' loses a fix in production."""

from __future__ import annotations

from patchforge.evidence.model import (
    CHANGED,
    CONFLICT,
    KEEP,
    LANDED,
    PARTIAL,
    REVERTED,
    SUPERSEDED,
    UNKNOWN,
    Past,
    Signals,
    Unit,
    Verdict,
)
from patchforge.evidence.weight import ENOUGH


def judge(name: str, signals: Signals, proves: bool) -> Verdict:
    """The verdict for patch ``name``; ``proves`` says that its coming off the release means something."""
    verdict, confidence, reason = _judge(signals, proves)
    if signals.probe is False and verdict == LANDED:
        verdict, confidence = CHANGED, "medium"
        reason += "; but its probe does not hold on the release"
    elif signals.probe is True and verdict == LANDED and confidence == "medium":
        confidence, reason = "high", f"{reason}; its probe holds on the release"
    elif signals.probe is True and verdict == CHANGED and confidence == "low":
        confidence, reason = "medium", f"{reason}; its probe holds on the release"
    elif signals.probe is True and verdict in (KEEP, CONFLICT):
        reason += "; yet its probe holds on the release: look at it"
        verdict, confidence = CHANGED, "low"
    if signals.lost and verdict == KEEP:
        confidence = "medium"
        reason += f"; but the release no longer has what it uses: {', '.join(signals.lost)}"
    if signals.stands_on and verdict == CONFLICT:
        reason = f"it changes what {signals.stands_on} makes, which does not apply to the release either"
    elif not signals.searched and verdict == CONFLICT and any(unit.state == "absent" for unit in signals.units):
        verdict, confidence = UNKNOWN, "low"
        reason = (
            "what it changes is gone from its file, and not the whole release was searched for it: give the whole wheel"
        )
    if signals.past is not None:
        verdict, confidence, reason = _remembered(verdict, confidence, reason, signals.past)
    evidence = tuple((unit.old, unit.new) for unit in signals.units if unit.new)
    return Verdict(name, verdict, confidence, reason, signals, evidence)


def _remembered(verdict: str, confidence: str, reason: str, past: Past) -> tuple[str, str, str]:
    """What history adds: it can lower, and name; it never makes a patch landed."""
    if past.reverted:
        if verdict in (KEEP, CONFLICT):
            return REVERTED, confidence, f"{reason}; upstream had it and took it back: {past.reverted}"
        if verdict in (LANDED, CHANGED, PARTIAL):
            return CHANGED, "low", f"{reason}; but upstream took it back: {past.reverted}"
    if past.later and verdict == LANDED:
        named = ", ".join(past.later[:3])
        return LANDED, "medium" if confidence == "high" else confidence, f"{reason}; touched since by {named}"
    if past.carries and verdict == CONFLICT:
        return SUPERSEDED, "medium", f"upstream solved it in its own way: {past.carries}; {reason}"
    if past.carries:
        reason += f"; the release carries {past.carries}"
    return verdict, confidence, reason


def _judge(s: Signals, proves: bool) -> tuple[str, str, str]:
    states = [unit.state for unit in s.units]
    moved = sorted({unit.moved for unit in s.units if unit.moved})
    patched = states.count("patched")
    every = bool(states) and patched == len(states)
    tells = patched > 0 and _tells(sum(u.weight for u in s.units if u.state == "patched"), s.units)
    if s.reverse and proves and not s.forward:
        if every or not s.units:
            return LANDED, "high", "it comes off the release, every hunk at one place"
        if patched:
            return LANDED, "medium", "it comes off the release, and something around it differs"
    if every and moved:
        return LANDED, "high" if not s.forward else "medium", f"the release has what it makes, in {', '.join(moved)}"
    if s.merge == "no-op" and not s.forward:
        if every and proves:
            return LANDED, "high", "merging it changes nothing, and each definition is the patched one"
        if patched or s.lines:
            return LANDED, "medium", "merging it changes nothing; what stands around it differs"
    if every and proves and not s.forward:
        return LANDED, "high", "each definition it changes says in the release what the patch makes it say"
    if s.forward and not tells:
        return KEEP, "high", "it applies, and the release has none of it"
    if tells and "old" in states and not s.forward:
        return PARTIAL, "medium", f"{_named(s.units, 'patched')} in the release, {_named(s.units, 'old')} not"
    if s.forward:
        if every and s.lines and not proves:
            return CHANGED, "low", "what it does seems to be in the release, and it still applies"
        return KEEP, "medium", "it applies; part of what it makes is there already"
    if tells or s.lines:
        return CHANGED, "medium", f"the release has {_named(s.units, 'patched') or 'its lines'}, in another form"
    return _in_part(s) or _conflict(s)


def _tells(words: int, units: tuple[Unit, ...]) -> bool:
    """True when so many words in common are no coincidence, or a good part of what the patch says."""
    return words >= ENOUGH or words * 10 >= sum(unit.weight for unit in units)


def _in_part(s: Signals) -> tuple[str, str, str] | None:
    """Definitions that differ from both sides, and in which the release did most of what the patch does."""
    alike = [u for u in s.units if u.state == "other" and u.did >= 3 and u.did * 3 >= u.weight * 2]
    did, whole = sum(u.did for u in alike), sum(u.weight for u in s.units)
    if not alike or s.stands_on or not _tells(did, s.units):
        return None
    names = ", ".join(u.name for u in alike[:4]) + (f" and {len(alike) - 4} more" if len(alike) > 4 else "")
    reason = f"in {names} the release did most of it itself ({did} of the patch's {whole} words): look at it"
    return CHANGED if len(alike) == len(s.units) else PARTIAL, "low", reason


def _conflict(s: Signals) -> tuple[str, str, str]:
    if not s.why:
        return CONFLICT, "medium", "it does not apply"
    if s.merge == "changes":
        return CONFLICT, "medium", f"the release left its lines alone, and their place is no longer certain ({s.why})"
    if s.merge == "missing":
        return CONFLICT, "medium", f"the release lacks a file it changes ({s.why})"
    return CONFLICT, "medium", f"the release changed the same lines in its own way ({s.why})"


def _named(units: tuple[Unit, ...], state: str) -> str:
    names = [unit.name for unit in units if unit.state == state]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
