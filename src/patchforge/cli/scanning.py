"""The work of ``retire-scan``: the pin's tree, the releases, and a scan of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from patchforge.cli import targets
from patchforge.cli.session import cache_directory
from patchforge.engine.apply import entry_of
from patchforge.engine.files import pristine_files
from patchforge.engine.model import FileState
from patchforge.engine.plan import plan_series
from patchforge.errors import InputError
from patchforge.evidence.model import Verdict
from patchforge.evidence.scan import scan
from patchforge.evidence.units import Release
from patchforge.headers.probe import Probe, parse_probe
from patchforge.series.parsed import ParsedPatch, parse_series_patches
from patchforge.series.pin import Flavor, Pin
from patchforge.series.project import Series
from patchforge.tree.root import Root


def scan_all(series: Series, where: targets.Where, names: list[str]) -> dict[str, list[Verdict]]:
    """The verdicts by release.  Raises :class:`InputError` when the series does not apply to its own pin."""
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
        out = {}
        for name in names:
            with release_of(name, series.pin, where.flavor, show) as release:
                out[name] = scan(patches, plan, release, probes, show)
        return out


def _probes(parsed: list[ParsedPatch]) -> dict[str, Probe]:
    found = {}
    for item in parsed:
        value = item.header.get("Probe") if item.header is not None else ""
        if value:
            found[item.file.name] = parse_probe(value)
    return found


@contextmanager
def release_of(
    name: str, pin: Pin | None, flavor: str | None, show: Callable[[str, int, int], None]
) -> Iterator[Release]:
    """A release by version, wheel file or directory."""
    path = Path(name)
    if path.is_dir():
        base = path / pin.root if pin is not None and (path / pin.root).is_dir() else path
        with Root(base) as root:
            yield Release(_disk_reader(root), lambda: _walk(base))
        return
    if path.suffix == ".whl":
        if not path.is_file():
            raise InputError("there is no such wheel", reason="usage", file=name)
        wheel = path
    else:
        if pin is None:
            raise InputError(f"{name} is not a directory", reason="usage")
        wheel = _fetched(name, pin, pin.flavor(flavor), show)
    assert pin is not None
    yield _packed(wheel, pin.root)


def _fetched(version: str, pin: Pin, flavor: Flavor, show: Callable[[str, int, int], None]) -> Path:
    """The wheel of another version, through pip, proved by the hash the index gives."""
    from patchforge.releases.cache import fetch
    from patchforge.releases.pip import find

    show(f"asking pip for {flavor.distribution}=={version}", 0, 0)
    found = find(flavor.distribution, version)
    other = Pin(pin.distribution, version, pin.root, pin.strip, (flavor,))
    return fetch(other, flavor, found.wheel, cache_directory(), lambda text: show(text, 0, 0))


def _disk_reader(root: Root) -> Callable[[str], FileState | None]:
    def read(path: str) -> FileState | None:
        found = root.read(path)
        return None if found is None else FileState.of(found.data, found.executable)

    return read


def _walk(base: Path) -> Iterable[str]:
    return (p.relative_to(base).as_posix() for p in sorted(base.rglob("*.py")) if p.is_file())


def _packed(wheel: Path, root: str) -> Release:
    import zipfile

    from patchforge.releases.reading import wheel_files

    files = wheel_files(wheel, root)

    def read(path: str) -> FileState | None:
        found = files(path)
        return None if found is None else FileState.of(*found)

    def paths() -> Iterable[str]:
        with zipfile.ZipFile(wheel) as archive:
            return [n[len(root) + 1 :] for n in archive.namelist() if n.startswith(f"{root}/") and n.endswith(".py")]

    return Release(read, paths)
