"""Scanning a series: every patch judged on the release plus the patches before it that stay."""

from __future__ import annotations

from collections.abc import Callable

from patchforge.diff import Patch
from patchforge.engine.locking import scopes_of
from patchforge.engine.model import Entry, FileState, Plan, Reader, Step
from patchforge.engine.place import Options
from patchforge.engine.plan import plan_series
from patchforge.engine.probes import probe_holds
from patchforge.engine.reverse import reversed_patch
from patchforge.evidence.merge import merged
from patchforge.evidence.model import LANDED, Past, Signals, Unit, Verdict
from patchforge.evidence.moved import moved_files
from patchforge.evidence.needs import lost_names
from patchforge.evidence.units import Release, units_of
from patchforge.evidence.unmade import Unmade
from patchforge.evidence.verdict import judge
from patchforge.headers.probe import Probe


def scan(
    patches: list[Patch],
    old: Plan,
    release: Release,
    probes: dict[str, Probe],
    progress: Callable[[str, int, int], None] | None = None,
    past: Callable[[str, tuple[Unit, ...]], Past | None] = lambda name, units: None,
    package: str = "",
) -> list[Verdict]:
    """Judge every patch of ``old``, a plan without failure on the pin, against ``release``.

    ``past`` gives what history says of a patch; ``package`` is the name modules of the tree are imported under.
    """
    reverses = _reverses(patches, release.read)
    now: dict[str, FileState | None] = {}

    def read(path: str) -> FileState | None:
        if path not in now:
            now[path] = release.read(path)
        return now[path]

    survivors = Release(read, release.paths, release.complete, release.raw)
    verdicts = []
    unmade = Unmade()
    for number, (patch, result) in enumerate(zip(patches, old.results, strict=True)):
        if progress is not None:
            progress(patch.name, number, len(patches))
        plan = plan_series([Entry(patch, _scope(patch, result.steps))], read)
        pairs = list(zip(patch.files, result.steps, strict=True))
        units = unmade.apart(unit for change, step in pairs for unit in units_of(change, step, survivors))
        signals = Signals(
            forward=plan.failure is None,
            reverse=reverses[patch.name],
            merge=_merge(result.steps, read),
            units=units,
            lines=_lines(patch, result.steps, read),
            probe=probe_holds(probes.get(patch.name), release.read, package),
            why="; ".join([plan.failure.message, *moved_files(result.steps, survivors)])
            if plan.failure is not None
            else "",
            offset=bool(plan.results[0].offsets),
            lost=tuple(name for change, step in pairs for name in lost_names(change, step, read)),
            past=past(patch.name, units),
            searched=release.complete(),
            stands_on=unmade.under(result.steps, units),
        )
        verdict = judge(patch.name, signals, _proves(patch))
        verdicts.append(verdict)
        if verdict.verdict != LANDED and plan.failure is None:
            now.update(plan.after)
        elif verdict.verdict != LANDED:
            unmade.note(patch.name, result.steps, units, read)
    return verdicts


def _scope(patch: Patch, steps: tuple[Step, ...]) -> Callable[[int, int], str | None]:
    """Where each hunk lay on the pin: an offset in the release must be inside the same definition."""
    known: dict[int, tuple[str, ...]] = {}

    def scope(section: int, hunk: int) -> str | None:
        if section not in known:
            known[section] = scopes_of(patch.files[section], steps[section])
        return known[section][hunk] if known[section] else None

    return scope


def _reverses(patches: list[Patch], read: Reader) -> dict[str, bool]:
    """Whether each patch comes off the release, peeled from the top so that later ones do not hide earlier ones."""
    now: dict[str, FileState | None] = {}

    def current(path: str) -> FileState | None:
        if path not in now:
            now[path] = read(path)
        return now[path]

    found = {}
    for patch in reversed(patches):
        try:
            back = reversed_patch(patch)
        except ValueError:
            found[patch.name] = False
            continue
        plan = plan_series([Entry(back)], current, Options(prove_scope=False))
        found[patch.name] = plan.failure is None
        if plan.failure is None:
            now.update(plan.after)
    return found


def _proves(patch: Patch) -> bool:
    """True when coming off means something: no hunk without context, and not deletions alone.

    A file that the patch makes has no context and needs none: it has to be there as a whole.
    """
    hunks = [(hunk, change.old_path is None) for change in patch.files for hunk in change.hunks]
    return bool(hunks) and all(new or not h.zero_context for h, new in hunks) and any(h.added for h, _ in hunks)


def _merge(steps: tuple[Step, ...], read: Reader) -> str:
    outcomes = set()
    for step in steps:
        new = read(step.path)
        if step.before is None:
            same = new is not None and step.after is not None and new.lines == step.after.lines
            outcomes.add("no-op" if same else "changes" if new is None else "conflict")
        elif step.after is None:
            outcomes.add("no-op" if new is None else "changes" if new.lines == step.before.lines else "conflict")
        elif new is None:
            outcomes.add("missing")
        else:
            edits = [(index, index + len(taken), put) for index, taken, put in step.edits]
            outcomes.add(merged(step.before.lines, new.lines, edits))
    for word in ("missing", "conflict", "changes"):
        if word in outcomes:
            return word
    return "no-op"


def _lines(patch: Patch, steps: tuple[Step, ...], read: Reader) -> bool:
    """Every added line of more than punctuation is there, in order, and every removed one is gone."""
    counted = 0
    for change, step in zip(patch.files, steps, strict=True):
        new = read(step.path)
        have = new.lines if new is not None else []
        at = 0
        for hunk in change.hunks:
            added = [text for op, text in hunk.body if op == b"+" and len(text.strip()) > 3]
            for text in added:
                try:
                    at = have.index(text, at) + 1
                except ValueError:
                    return False
            counted += len(added)
            kept = set(hunk.new)
            if any(
                op == b"-" and len(text.strip()) > 3 and text not in kept and text in have for op, text in hunk.body
            ):
                return False
    return counted > 0
