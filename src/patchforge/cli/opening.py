"""From the name of a release to its files: a version, a wheel, a directory, a commit of a repository."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchforge.cli.session import cache_directory
from patchforge.engine.model import FileState, Reader
from patchforge.errors import InputError
from patchforge.evidence.units import Release
from patchforge.releases.contents import Contents, Cost, Directory, Packed
from patchforge.releases.history import AtCommit, History, Repository, is_repository
from patchforge.releases.ranged import NoRangesError, Ranged
from patchforge.series.pin import Flavor, Pin

Show = Callable[[str, int, int], None]
_SEARCHED = 200
"""What moved is looked for in at most one part in this many of a wheel's bytes when they come over the network."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A release ready to be judged: its files, its history where there is one, and what reading it has cost."""

    name: str
    release: Release
    history: History | None
    cost: Callable[[], Cost | None]
    warm: Callable[[list[str]], None]


@dataclass(frozen=True, slots=True)
class Base:
    """What the series is for: its pin (``None``: bare), the flavour, the tree's files, and a repository with the history."""

    pin: Pin | None
    flavor: str | None
    read: Reader
    data: Callable[[str], bytes | None]
    git: Path | None = None


@contextmanager
def opened_release(name: str, base: Base, whole: bool, show: Show) -> Iterator[Opened]:
    """The release called ``name``.  ``whole``: fetch whole wheels.  Raises :class:`InputError`."""
    root = base.pin.root if base.pin is not None else ""
    directory, at, ref = name.rpartition("@")
    if Path(name).is_dir():
        if base.git is not None:
            raise InputError(
                f"--git has nothing to say of {name}: a directory has no version",
                reason="usage",
                hint="name the commit: --against REPOSITORY@REF",
            )
        under = Path(name) / root
        with Directory(under if root and under.is_dir() else Path(name)) as contents:
            yield _opened(name, contents, base, None)
    elif at and ref and is_repository(Path(directory)):
        repository = Repository(Path(directory))
        try:
            commit = repository.commit(ref)
            if commit is None:
                raise InputError(f"{directory} has no commit '{ref}'", reason="usage")
            tree = AtCommit(repository, commit, root)
            pinned = repository.tag_of(base.pin.version) if base.pin is not None else None
            yield _opened(name, tree, base, History(repository, commit, pinned, tree.prefix))
        finally:
            repository.close()
    else:
        if base.pin is None:
            raise InputError(f"{name} is neither a directory nor REPOSITORY@REF", reason="usage")
        with _wheel(name, base.pin, base.flavor, whole, show) as contents, _history(name, base) as history:
            yield _opened(name, contents, base, history)


@contextmanager
def _history(name: str, base: Base) -> Iterator[History | None]:
    """The history of a version, from the repository the user named."""
    if base.git is None or base.pin is None:
        yield None
        return
    repository = Repository(base.git)
    version = Path(name).name.split("-")[1] if name.endswith(".whl") and name.count("-") > 1 else name
    try:
        commit = repository.tag_of(version)
        if commit is None:
            hint = f"looked for v{version} and {version}"
            raise InputError(f"{base.git} has no tag for {version}", reason="usage", hint=hint)
        prefix = AtCommit(repository, commit, base.pin.root).prefix
        yield History(repository, commit, repository.tag_of(base.pin.version), prefix)
    finally:
        repository.close()


def _wheel(name: str, pin: Pin, flavor: str | None, whole: bool, show: Show) -> Packed | Ranged:
    path = Path(name)
    if "/" in name and path.suffix != ".whl":
        what = "it is a file" if path.exists() else "there is no such directory"
        raise InputError(
            f"{name} is no release: {what}",
            reason="usage",
            hint="a version, a wheel (.whl), a directory, or REPOSITORY@REF",
        )
    if path.suffix == ".whl":
        if not path.is_file():
            raise InputError("there is no such wheel", reason="usage", file=name)
        return Packed(path, pin.root)
    return _fetched(name, pin, pin.flavor(flavor), whole, show)


def _fetched(version: str, pin: Pin, flavor: Flavor, whole: bool, show: Show) -> Packed | Ranged:
    """The wheel of another version: by byte ranges where the index gives them, else whole and proved by its hash."""
    from patchforge.releases.cache import fetch
    from patchforge.releases.versions import known

    cache = cache_directory()
    found = known(flavor.distribution, version, cache, lambda text: show(text, 0, 0))
    have = cache / "wheels" / found.wheel.sha256 / found.wheel.file
    if not whole and not have.is_file() and found.url.startswith(("https://", "http://")):
        show(f"reading {found.wheel.file} by ranges", 0, 0)
        try:
            return Ranged(found.url, pin.root, cache / "ranges" / f"{found.wheel.sha256}.whl")
        except NoRangesError:
            pass
    other = Pin(pin.distribution, version, pin.root, pin.strip, (flavor,))
    return Packed(fetch(other, flavor, found.wheel, cache, lambda text: show(text, 0, 0)), pin.root)


def _opened(name: str, contents: Contents, base: Base, history: History | None) -> Opened:
    """``contents`` as a release.  Files that are, by their checksum, what the pin has are not read a second time."""
    remote = isinstance(contents, Ranged)
    complete = True

    def same(path: str) -> bool:
        checksum = contents.checksum(path) if remote else None
        data = base.data(path) if checksum is not None else None
        return data is not None and (zlib.crc32(data), len(data)) == checksum

    def read(path: str) -> FileState | None:
        if same(path):
            return base.read(path)
        bits = contents.read(path)
        return None if bits is None else FileState.of(*bits)

    def data(path: str) -> bytes:
        bits = contents.read(path)
        return b"" if bits is None else bits[0]

    def paths() -> Iterable[str]:
        nonlocal complete
        every = [p for p in contents.paths() if p.endswith(".py")]
        if not isinstance(contents, Ranged):
            return every
        changed = [p for p in every if not same(p)]  # what moved is in a file that is new or changed
        chosen = _likely(changed, touched, base.read, contents)
        complete = len(chosen) == len(changed)
        contents.prefetch(chosen)
        return chosen

    touched: set[str] = set()

    def warm(wanted: list[str]) -> None:
        touched.update(wanted)
        if isinstance(contents, Ranged):
            contents.prefetch([p for p in wanted if not same(p)])

    if not contents.paths():
        raise InputError(f"{name} holds no file of the tree the series is for", reason="usage")
    known: list[str] = []

    def listed() -> Iterable[str]:
        if not known:
            known.extend(paths())
        return known

    return Opened(name, Release(read, listed, lambda: complete, data), history, contents.cost, warm)


def _likely(changed: list[str], touched: set[str], pinned: Reader, contents: Ranged) -> list[str]:
    """Where what moved may be, as far as it is cheap: files called as a touched one, then new ones, then the others.

    Files that are here already count too, or the answer would change from run to run.
    """
    names = {path.rpartition("/")[2] for path in touched} - {"__init__.py"}
    cost = contents.cost()
    most = cost.whole // _SEARCHED if cost is not None else 0
    order = sorted(changed, key=lambda p: (p.rpartition("/")[2] not in names, pinned(p) is not None, p))
    chosen: list[str] = []
    for at in range(0, len(order), 25):
        more = [*chosen, *order[at : at + 25]]
        if contents.bytes_of(more) > most:
            break
        chosen = more
    return chosen
