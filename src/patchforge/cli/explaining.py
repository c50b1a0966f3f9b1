"""After a failure: who changed the lines, what changed since the pin, and a proposal beside the tree."""

from __future__ import annotations

from pathlib import Path

from patchforge.cli import targets
from patchforge.cli.session import cache_directory
from patchforge.engine.apply import Applied
from patchforge.engine.files import pristine_files
from patchforge.engine.model import FileState, Reader
from patchforge.reports.model import Line
from patchforge.series.parsed import parse_file
from patchforge.series.project import Series
from patchforge.tree.target import Target

_EXPLAINED = ("context", "moved", "ambiguous", "already-there", "partly-applied")


def explained(series: Series, target: Target, done: Applied) -> tuple[Line, ...]:
    """Lines that say more about the failure of ``done``; a proposal is written to build/proposals of the project."""
    failure = next((r.failure for r in done.results if r.failure is not None), None)
    if failure is None or failure.reason not in _EXPLAINED or failure.file is None:
        return ()
    from patchforge.graph.blame import changed_by

    number = next(n for n, p in enumerate(series.patches) if p.name == failure.patch)
    patches = [parse_file(file) for file in series.patches[: number + 1]]
    lines: list[Line] = []
    earlier = changed_by(patches, done.results, failure)
    if earlier:
        lines.append(Line(f"    changed there before it: {', '.join(earlier)}", "dim"))
    base = _base(series)
    if base is None or series.pin is None or series.project is None:
        return tuple(lines)
    from patchforge.branch.propose import propose

    read = pristine_files(target)
    proposal = propose(patches, done.results, failure, base, read)
    if proposal is None:
        return tuple(lines)
    if proposal.changed:
        lines.append(Line(f"    between {series.pin.distribution} {series.pin.version} and this tree:", "dim"))
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
