"""From options to an opened series and an opened tree."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from patchforge.cli.session import cache_directory
from patchforge.errors import InputError, TreeError
from patchforge.series.pin import Flavor, Pin, Wheel
from patchforge.series.project import Project, Series, find_project, load_quilt, load_series
from patchforge.tree.locate import Installed, in_directory, locate
from patchforge.tree.target import Target, open_bare, open_installed

if TYPE_CHECKING:
    from patchforge.series.parsed import Schema


@dataclass(frozen=True, slots=True)
class Where:
    """Which series and which tree, as the options say."""

    pin: str | None = None
    project: Path | None = None
    tree: Path | None = None
    python: str | None = None
    fetch: bool = False
    flavor: str | None = None
    quilt: Path | None = None
    strip: int | None = None
    allow_version: bool = False
    quiet: bool = False
    fallback: str = ""
    """Where to look when no tree is named and the distribution is not installed: ``built``, the tree --fetch made before, or
    ``pin``, for what needs only the release as it is, also the wheel --fetch left in the cache."""

    def check(self) -> None:
        """Options that exclude each other.  Raises :class:`InputError`."""
        chosen = [n for n, v in (("--tree", self.tree), ("--python", self.python), ("--fetch", self.fetch)) if v]
        if len(chosen) > 1:
            raise InputError(f"{' and '.join(chosen)} name different trees: give one", reason="usage")
        if self.quilt is not None and (self.pin is not None or self.python or self.fetch):
            raise InputError(
                "a bare series (--quilt) has no pin: it takes --tree DIR",
                reason="usage",
                hint="drop PIN, --python, --fetch",
            )
        if self.strip is not None and self.quilt is None:
            raise InputError("-p is for a bare series; a project's strip level is in pin.toml", reason="usage")
        if self.flavor is not None and not self.fetch:
            raise InputError("--flavor says which wheel --fetch gets", reason="usage")


def project_of(where: Where) -> Project:
    """The project the options or the current directory name."""
    if where.project is not None and not (where.project / "series").is_dir():
        raise InputError(f"{where.project} is not a project: it has no series/ directory", reason="usage")
    project = find_project(where.project or Path.cwd())
    if where.project is not None and project.root != where.project.absolute():
        raise InputError(f"{where.project} is not a project: it has no pin", reason="usage")
    return project


@cache
def schema() -> Schema:
    """The header schema that ships with patchforge; one for the process, so that its checker is made once."""
    from patchforge import resources
    from patchforge.series.parsed import Schema

    return Schema(resources.schema_hash(), resources.schema)


def load(where: Where) -> Series:
    """The series the options name."""
    where.check()
    if where.quilt is not None:
        return load_quilt(where.quilt, where.strip)
    return load_series(project_of(where), where.pin)


@contextmanager
def opened(where: Where, series: Series, write: bool) -> Iterator[Target]:
    """The tree the options name, opened; with ``write``, locked.  Raises :class:`TreeError`."""
    if series.pin is None:
        if where.tree is None:
            raise InputError("a bare series needs a tree", reason="usage", hint="name it with --tree DIR")
        with _bare(where.tree, write) as target:
            yield target
        return
    installed = find_tree(where, series.pin, series.project)
    if installed is None:
        assert where.tree is not None
        with _bare(where.tree, write) as target:
            _holds(target, series, where.tree)
            yield target
        return
    check_version(installed, series.pin, where.allow_version)
    with open_installed(installed, series.pin.root, write, _waiting) as target:
        yield target


def _holds(target: Target, series: Series, tree: Path) -> None:
    """Refuse a directory that has not one of the files the series is about: it is another one, often of another level."""
    assert series.pin is not None
    wanted = [f.path for f in series.lock.files if f.before is not None] if series.lock is not None else []
    if not wanted or any(target.root.exists(path) for path in wanted):
        return
    root = series.pin.root
    inside = next((d for d in (tree / root, tree / root.rpartition("/")[2]) if d.is_dir()), None)
    raise InputError(
        f"there is no {series.pin.distribution} in {tree}: it has none of the {len(wanted)} files the series changes",
        reason="usage",
        hint=f"did you mean {inside}?"
        if inside
        else f"name the package's own directory, or the one that holds {root}/",
    )


@contextmanager
def _bare(tree: Path, write: bool) -> Iterator[Target]:
    if not tree.is_dir():
        raise InputError(f"{tree} is not a directory", reason="usage")
    with open_bare(tree, write, _waiting) as target:
        yield target


def find_tree(where: Where, pin: Pin, project: Path | None) -> Installed | None:
    """The installed distribution, fetched first where the options say so; ``None`` for a directory without metadata."""
    names = list(dict.fromkeys([pin.distribution, *(f.distribution for f in pin.flavors)]))
    if where.tree is not None:
        return in_directory(where.tree, names, pin.root)
    if where.fetch:
        assert project is not None
        directory = fetched(pin, pin.flavor(where.flavor), project, where.quiet)
        found = in_directory(directory, names, pin.root)
        if found is None:
            raise TreeError(
                f"{directory} does not hold {pin.distribution} {pin.version}",
                reason="tree",
                hint=f"delete {directory} and run it again",
            )
        return found
    try:
        return locate(names, where.python)
    except TreeError as error:
        made = _fetched_before(where, pin, project) if error.reason == "not-installed" else None
        found = None if made is None else in_directory(made, names, pin.root)
        if found is None:
            raise
        if not where.quiet:
            text = (
                f"note: {pin.distribution} is not installed here; this is about {shown(str(made))}, as --fetch made it"
            )
            print(text, file=sys.stderr, flush=True)
        return found


def _fetched_before(where: Where, pin: Pin, project: Path | None) -> Path | None:
    """The tree an earlier ``--fetch`` unpacked, or can unpack without asking anybody."""
    if where.python is not None or where.fallback not in ("built", "pin") or project is None or not pin.flavors:
        return None
    flavor = pin.flavors[0]
    if (project / "build" / pin.id).is_dir():
        return _made_from(project / "build" / pin.id, flavor)
    if where.fallback != "pin" or not flavor.wheels:
        return None
    wheel = suitable(flavor)
    cached = (cache_directory() / "wheels" / wheel.sha256 / wheel.file).is_file()
    return fetched(pin, flavor, project, where.quiet) if cached else None


def check_version(installed: Installed, pin: Pin, allow: bool) -> None:
    """The installed release must be the pin's; a local version (``+cpu``) is a build of the same release."""
    if installed.version == pin.version or installed.version.partition("+")[0] == pin.version or allow:
        return
    raise TreeError(
        f"{installed.distribution} {installed.version} is installed in {installed.site}, and the series is cut against "
        f"{pin.version}",
        reason="version",
        hint=f"install {pin.distribution}=={pin.version}, take the release with --fetch, or try it out with --allow-version",
    )


def fetched(pin: Pin, flavor: Flavor, project: Path, quiet: bool) -> Path:
    """The unpacked pinned wheel of ``flavor`` under ``build/``; fetched and unpacked when it is not there."""
    name = pin.id if flavor.name == pin.flavors[0].name else f"{pin.id}-{flavor.name}"
    directory = project / "build" / name
    wheel = suitable(flavor)
    if directory.is_dir():
        return _made_from(directory, flavor)
    from patchforge.releases.cache import fetch, unpack
    from patchforge.series.files import replace_file

    with progress(quiet) as show:
        file = fetch(pin, flavor, wheel, cache_directory(), lambda text: show(text, 0, 0))
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TreeError(f"cannot make {directory.parent}: {error.strerror}", reason="write") from error
        replace_file(_note(directory), f"{wheel.sha256}  {wheel.file}\n".encode())
        unpack(file, directory, show)
    return directory


def _note(directory: Path) -> Path:
    """Where it is noted which wheel the tree in ``directory`` was unpacked from, as ``sha256sum`` writes it."""
    return directory.with_name(f"{directory.name}.sha256")


def _made_from(directory: Path, flavor: Flavor) -> Path:
    """``directory``.  Raises :class:`TreeError` when it was unpacked from a wheel that the pin does not name (any more)."""
    from patchforge.series.files import read_file

    note = read_file(_note(directory), str(_note(directory)), "tree")
    made = b"" if note is None else note.partition(b" ")[0]  # an earlier patchforge left no note
    if made and made.decode("ascii", "replace") not in {wheel.sha256 for wheel in flavor.wheels}:
        raise TreeError(
            f"{shown(str(directory))} was unpacked from another wheel (sha256 {made.decode('ascii', 'replace')[:12]}…) than "
            f"the pin names",
            reason="hash",
            hint=f"mend pin.toml, or delete {shown(str(directory))} and run it again with --fetch",
        )
    return directory


def suitable(flavor: Flavor) -> Wheel:
    """The flavour's wheel for this kind of machine, or its only one."""
    import platform

    if not flavor.wheels:
        raise InputError(f"the pin's flavor '{flavor.name}' lists no wheel", reason="pin", hint="add one to pin.toml")
    machine = platform.machine()
    fitting = [w for w in flavor.wheels if w.tags[2] == "any" or w.tags[2].endswith(machine)]
    return (fitting or list(flavor.wheels))[0]


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A function ``(what, done, total)`` that moves a bar on a terminal and does nothing anywhere else."""
    if quiet or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total or None)


def shown(path: str) -> str:
    """``path`` as a person reads it: relative where it lies below the current directory."""
    try:
        return Path(path).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path


def _waiting(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def unlocked(series: Series) -> Series:
    """``series`` without its lock."""
    return replace(series, lock=None)
