"""Finding a project and loading its series."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import InputError
from patchforge.series.files import read_file
from patchforge.series.lock import Lock, read_lock, series_hash
from patchforge.series.pin import Pin, read_pin
from patchforge.series.quilt import SeriesLine, read_series


@dataclass(frozen=True, slots=True)
class PatchFile:
    """One patch of a series: its name without suffix, where it lies, its bytes and their SHA-256."""

    name: str
    label: str
    path: Path
    strip: int
    data: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class Series:
    """The patches of a series in order, from a project or from a bare quilt directory (``pin`` is ``None``)."""

    label: str
    patches: tuple[PatchFile, ...]
    directory: Path
    pin: Pin | None = None
    project: Path | None = None
    lock: Lock | None = None

    @property
    def sha256(self) -> str:
        """The identity of the series."""
        return series_hash((p.name, p.strip, p.sha256) for p in self.patches)

    @property
    def lock_label(self) -> str:
        """The lock file as messages show it."""
        return f"{self.label.rpartition('/')[0]}/lock.toml".lstrip("/")

    @property
    def lock_is_current(self) -> bool:
        """True when the lock was computed from exactly these patches."""
        return self.lock is not None and self.lock.series == self.sha256

    def upto(self, name: str | None) -> Series:
        """The series up to and including patch ``name``."""
        if name is None:
            return self
        wanted = name.removesuffix(".patch")
        for index, patch in enumerate(self.patches):
            if wanted in (patch.name, patch.path.name.removesuffix(".patch")):
                return Series(self.label, self.patches[: index + 1], self.directory, self.pin, self.project, self.lock)
        raise InputError(
            f"no patch '{name}' in the series", reason="usage", hint=_near(name, [p.name for p in self.patches])
        )


@dataclass(frozen=True, slots=True)
class Project:
    """A project directory and the pins it has series for."""

    root: Path
    pins: tuple[str, ...]

    def series_dir(self, pin: str) -> Path:
        """Where pin.toml, series and lock.toml of ``pin`` lie."""
        return self.root / "series" / pin

    def patch_dir(self, pin: str) -> Path:
        """Where the patches of ``pin`` lie."""
        return self.root / "patches" / pin

    def choose(self, pin: str | None) -> str:
        """The pin called ``pin``, or the newest one; of several distributions none is.  Raises :class:`InputError`."""
        if pin is None:
            if len({name.rpartition("-")[0] for name in self.pins}) > 1:
                raise InputError(
                    "the project has series for several distributions",
                    reason="usage",
                    hint=f"say which: {', '.join(self.pins)}",
                )
            return self.pins[-1]
        wanted = pin.replace("==", "-")
        if wanted in self.pins:
            return wanted
        raise InputError(f"no pin '{pin}' in this project", reason="usage", hint=f"known: {', '.join(self.pins)}")

    def pin(self, pin: str | None) -> Pin:
        """The pin file of the chosen pin."""
        path = self.series_dir(self.choose(pin)) / "pin.toml"
        return read_pin(path, self.label(path))

    def label(self, path: Path) -> str:
        """``path`` as messages show it: relative to the project."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)


def _near(name: str, known: list[str]) -> str | None:
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else None


def find_project(start: Path) -> Project:
    """The project of ``start`` or of the nearest directory above it.  Raises :class:`InputError`."""
    start = start.absolute()
    for root in (start, *start.parents):
        found = _pins(root)
        if found:
            return Project(root, found)
    raise InputError(
        f"{start} is in no patchforge project (no series/NAME-VERSION/pin.toml here or above)",
        reason="usage",
        hint="start one with 'patchforge init NAME==VERSION', name one with --project, or use --quilt DIR --tree DIR",
    )


def _pins(root: Path) -> tuple[str, ...]:
    try:
        names = [p.name for p in (root / "series").iterdir() if (p / "pin.toml").is_file()]
    except OSError:
        return ()
    return tuple(sorted(names, key=_version_key))


def _version_key(name: str) -> tuple[str, tuple[tuple[int, int | str], ...]]:
    """``dev`` before ``a``, ``b``, ``rc``, these before the release, ``post`` after it; no packaging library is imported."""
    import re

    head, _, version = name.rpartition("-")
    ranks = {"dev": 0, "post": 3}
    parts = re.findall(r"\d+|[A-Za-z]+", version)
    key: list[tuple[int, int | str]] = [(4, int(p)) if p.isdigit() else (ranks.get(p, 1), p) for p in parts]
    return head, (*key, (2, ""))


def load_series(project: Project, pin_name: str | None) -> Series:
    """Load pin, order, patches and lock of a project.  Raises :class:`InputError` for anything missing."""
    name = project.choose(pin_name)
    directory = project.series_dir(name)
    pin = project.pin(name)
    if pin.id != name:
        raise InputError(
            f"the directory is '{name}' but the pin is {pin.id}",
            reason="pin",
            file=project.label(directory / "pin.toml"),
        )
    order = directory / "series"
    patches = _load(read_series(order, project.label(order)), project.patch_dir(name), project, order, pin.strip)
    lock_path = directory / "lock.toml"
    lock = read_lock(lock_path, project.label(lock_path))
    return Series(project.label(order), patches, project.patch_dir(name), pin, project.root, lock)


def load_quilt(directory: Path, strip: int | None = None) -> Series:
    """Load a bare quilt directory: a ``series`` file beside its patches."""
    root = Project(directory, ())
    order = directory / "series"
    lines = read_series(order, str(order))
    return Series(str(order), _load(lines, directory, root, order, 1 if strip is None else strip, bare=True), directory)


def _load(
    lines: tuple[SeriesLine, ...], directory: Path, project: Project, order: Path, strip: int, bare: bool = False
) -> tuple[PatchFile, ...]:
    patches = []
    for line in lines:
        path = directory / line.name
        label = str(path) if bare else project.label(path)
        data = read_file(path, label, "series")
        if data is None:
            try:
                known = sorted(p.name for p in directory.iterdir())
            except OSError:
                known = []
            raise InputError(
                f"the series names {line.name}, and there is no such file in "
                f"{directory if bare else project.label(directory)}",
                reason="series",
                file=str(order) if bare else project.label(order),
                line=line.line,
                hint=_near(line.name, known),
            )
        name = line.name if bare else line.name.removesuffix(".patch")
        level = line.strip if line.strip is not None else strip
        patches.append(PatchFile(name, label, path, level, data, hashlib.sha256(data).hexdigest()))
    return tuple(patches)
