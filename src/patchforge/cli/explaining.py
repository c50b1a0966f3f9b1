"""After a failure: who changed the lines, what changed since, and a proposal beside the tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from patchforge.cli import targets
from patchforge.cli.session import cache_directory
from patchforge.diff import Patch
from patchforge.engine.apply import Applied
from patchforge.engine.files import pristine_files
from patchforge.engine.model import Failure, FileState, PatchResult, Reader
from patchforge.errors import InputError, PatchforgeError
from patchforge.reports.model import Line
from patchforge.series.parsed import parse_file
from patchforge.series.project import Series
from patchforge.tree.target import Target

if TYPE_CHECKING:
    from patchforge.branch.propose import Names, Proposal

_EXPLAINED = ("context", "moved", "ambiguous", "already-there", "partly-applied")


def explained(series: Series, target: Target, done: Applied) -> tuple[Line, ...]:
    """Lines that say more about the failure of ``done``; a proposal is written to build/proposals of the project."""
    failure = next((r.failure for r in done.results if r.failure is not None), None)
    if failure is None or failure.reason not in _EXPLAINED:
        return ()
    patches = _upto(series, failure)
    lines = _earlier(patches, done.results, failure)
    base = _base(series)
    if base is None or series.pin is None:
        return lines
    proposal = _proposal([patches], done.results, failure, base, pristine_files(target))
    return (*lines, *_told(series, failure, proposal, f"{series.pin.distribution} {series.pin.version} and this tree"))


def explained_on_pin(
    series: Series, results: tuple[PatchResult, ...], pin: Reader, old: Series | None
) -> tuple[Line, ...]:
    """The same for a series that does not apply to its pin any more: where it was ``old`` it did, or the patch alone does."""
    failure = next((r.failure for r in results if r.failure is not None), None)
    if failure is None or failure.reason not in _EXPLAINED:
        return ()
    from patchforge.branch.propose import Names

    patches = _upto(series, failure)
    lines = _earlier(patches, results, failure)
    known = old is not None and any(p.name == failure.patch for p in old.patches)
    if known and old is not None:
        names, fits = Names("the series now", "the series as it was"), _upto(old, failure)
        fits[-1] = patches[-1]
    else:
        names, fits = Names("the series before it", "the pin"), patches[-1:]
    proposal = _proposal([fits, patches[-1:]], results, failure, pin, pin, names)
    return (*lines, *_told(series, failure, proposal, f"{names.base} and {names.ours}"))


@contextmanager
def explaining(pin: Reader, old: Series) -> Iterator[None]:
    """Whatever finds in here that a series does not apply to its pin any more is explained."""
    from patchforge.branch.derived import Unfit
    from patchforge.reports.failures import detail_of

    try:
        yield
    except PatchforgeError as error:
        found = error if isinstance(error, Unfit) else error.__cause__
        if isinstance(found, Unfit):
            more = explained_on_pin(found.series, found.plan.results, pin, old)
            error.shown = (*detail_of(found.failure), *more)
        raise


def _upto(series: Series, failure: Failure) -> list[Patch]:
    number = next(n for n, p in enumerate(series.patches) if p.name == failure.patch)
    return [parse_file(file) for file in series.patches[: number + 1]]


def _earlier(patches: list[Patch], results: tuple[PatchResult, ...], failure: Failure) -> tuple[Line, ...]:
    from patchforge.graph.blame import changed_by

    found = changed_by(patches, results, failure)
    return (Line(f"    changed there before it: {', '.join(found)}", "dim"),) if found else ()


def _proposal(
    ways: Iterable[list[Patch]],
    results: tuple[PatchResult, ...],
    failure: Failure,
    base: Reader,
    tree: Reader,
    names: Names | None = None,
) -> Proposal | None:
    """The proposal from the first of ``ways``, patches that lead to where the failed one fits, that gives one."""
    from patchforge.branch.propose import propose

    for fits in ways:
        try:
            found = propose(fits, results, failure, base, tree, names)
        except InputError:
            continue
        if found is not None:
            return found
    return None


def _told(series: Series, failure: Failure, proposal: Proposal | None, between: str) -> tuple[Line, ...]:
    """Write the proposal; say what it is made of, and where it is."""
    if proposal is None or series.project is None:
        return ()
    lines: list[Line] = []
    if proposal.changed:
        lines.append(Line(f"    between {between}:", "dim"))
        styles = {"-": "del", "+": "add"}
        lines += [Line(f"      {text}", styles.get(text[:1], "dim")) for text in proposal.changed]
    path = series.project / "build/proposals" / failure.patch / proposal.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(proposal.data)
    how = f"{proposal.conflicts} conflicts to resolve" if proposal.conflicts != 1 else "1 conflict to resolve"
    merged = "it merges cleanly" if proposal.conflicts == 0 else how
    lines.append(Line(f"    proposal: {targets.shown(str(path))} ({merged}); nothing in the tree was touched", "head"))
    return tuple(lines)


def _base(series: Series) -> Reader | None:
    """The pristine pin, where it was fetched before: unpacked under build/, or as a wheel in the cache."""
    if series.pin is None or series.project is None:
        return None
    unpacked = series.project / "build" / series.pin.id / series.pin.root
    for flavor in series.pin.flavors:
        for wheel in flavor.wheels:
            file = cache_directory() / "wheels" / wheel.sha256 / wheel.file
            if file.is_file():
                return _packed(file, series.pin.root)
    if unpacked.is_dir():
        return _unpacked(series)
    return None


def _packed(file: Path, root: str) -> Reader:
    from patchforge.releases.contents import Packed

    contents = Packed(file, root)

    def read(path: str) -> FileState | None:
        found = contents.read(path)
        return None if found is None else FileState.of(*found)

    return read


def _unpacked(series: Series) -> Reader | None:
    from patchforge.tree.locate import in_directory
    from patchforge.tree.target import open_installed

    assert series.pin is not None and series.project is not None
    names = [series.pin.distribution, *(f.distribution for f in series.pin.flavors)]
    installed = in_directory(Path(series.project) / "build" / series.pin.id, names, series.pin.root)
    if installed is None:
        return None
    root = series.pin.root

    def read(path: str) -> FileState | None:
        with open_installed(installed, root, write=False) as target:
            found = target.pristine(path)
        return None if found is None else FileState.of(found.data, found.executable)

    return read
