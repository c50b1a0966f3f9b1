"""The work ``retire-scan`` and ``radar`` share: the pin's tree, the releases, and a scan of each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchforge.cli import targets
from patchforge.cli.opening import Base, opened_release
from patchforge.cli.pulling import Asked
from patchforge.engine.apply import entry_of
from patchforge.engine.files import pristine_data, pristine_files
from patchforge.engine.plan import plan_series
from patchforge.errors import InputError
from patchforge.evidence.model import Past, Said, Unit, Verdict
from patchforge.evidence.past import numbers_of, past_of
from patchforge.evidence.pulls import beside
from patchforge.evidence.scan import scan
from patchforge.evidence.texts import both_texts
from patchforge.headers.probe import Probe, parse_probe
from patchforge.headers.upstream import parse_upstream
from patchforge.releases.contents import Cost
from patchforge.releases.history import History
from patchforge.reports.model import Block
from patchforge.reports.retiring import explained
from patchforge.series.parsed import ParsedPatch, parse_series_patches
from patchforge.series.project import Series


@dataclass(frozen=True, slots=True)
class Scanned:
    """One release judged: the verdicts in series order, what reading it cost, and commits of the pin that it lacks."""

    target: str
    verdicts: tuple[Verdict, ...]
    cost: Cost | None = None
    lost: tuple[str, ...] = ()
    explained: tuple[Block, ...] = ()


def scan_all(
    series: Series,
    where: targets.Where,
    names: list[str],
    *,
    git: Path | None = None,
    whole: bool = False,
    explain: str | None = None,
    pulls: Asked | None = None,
) -> list[Scanned]:
    """Judge every release of ``names``; ``explain`` names a patch to show in full, ``pulls`` asks for pull requests.

    Raises :class:`InputError` when the series does not apply to its own pin.
    """
    gc.disable()  # the trees of a thousand statements: they live as long as the command, and have no cycles
    parsed = parse_series_patches(series, targets.schema() if series.pin is not None else None)
    probes = _probes(parsed)
    with targets.opened(where, series, write=False) as target, targets.progress(where.quiet) as show:
        read = pristine_files(target)
        lock = series.lock if series.lock_is_current else None
        plan = plan_series((entry_of(item, lock) for item in parsed), read, names=[p.name for p in series.patches])
        failure = plan.failure
        if failure is not None:
            raise InputError(
                f"the series does not apply to the tree it is for: {failure.patch}: {failure.message}",
                reason=failure.reason,
                file=failure.patch_file,
                line=failure.line,
            )
        patches = [item.patch for item in parsed]
        touched = sorted(
            {path for patch in patches for change in patch.files for path in (change.old_path, change.new_path) if path}
        )
        base = Base(series.pin, where.flavor, read, pristine_data(target), git)
        package = series.pin.root.replace("/", ".") if series.pin is not None else ""
        said: Mapping[str, tuple[Said, ...]] | None = None
        out = []
        for name in names:
            with opened_release(name, base, whole, show) as opened:
                opened.warm(touched)
                past = _past(parsed, series, opened.history)
                verdicts = scan(patches, plan, opened.release, probes, show, past, package)
                if pulls is not None:
                    said = said if said is not None else pulls.said(parsed, series, target, show)
                    verdicts = beside(verdicts, said, opened.history)
                lost = tuple(commit.short for commit in opened.history.lost()) if opened.history is not None else ()
                blocks: list[Block] = []
                for verdict, result in zip(verdicts, plan.results, strict=True):
                    if verdict.name == explain:
                        blocks += explained(
                            name, verdict, both_texts(verdict.signals.units, result.steps, opened.release)
                        )
                out.append(Scanned(name, tuple(verdicts), opened.cost(), lost, tuple(blocks)))
        return out


def releases_after(series: Series, flavor: str | None, latest: bool) -> list[str]:
    """The versions after the pin, as pip lists them; with ``latest``, the newest one alone.  Raises :class:`InputError`."""
    from patchforge.releases.versions import newer

    assert series.pin is not None
    found = newer(series.pin.flavor(flavor).distribution, series.pin.version)
    if not found:
        raise InputError(
            f"pip knows no release of {series.pin.distribution} after {series.pin.version}", reason="releases"
        )
    return found[-1:] if latest else found


def _probes(parsed: list[ParsedPatch]) -> dict[str, Probe]:
    found = {}
    for item in parsed:
        value = item.header.get("Probe") if item.header is not None else ""
        if value:
            found[item.file.name] = parse_probe(value)
    return found


def _past(
    parsed: list[ParsedPatch], series: Series, history: History | None
) -> Callable[[str, tuple[Unit, ...]], Past | None]:
    """What history says of a patch by name; nothing where there is no history, or no reference to look for."""
    numbers: dict[str, tuple[int, ...]] = {}
    for item in parsed:
        value = item.header.get("Upstream") if item.header is not None and series.pin is not None else ""
        if value and series.pin is not None:
            numbers[item.file.name] = numbers_of(parse_upstream(value), series.pin.distribution)

    def past(name: str, units: tuple[Unit, ...]) -> Past | None:
        mine = numbers.get(name, ())
        return past_of(mine, units, history) if history is not None and mine else None

    return past
