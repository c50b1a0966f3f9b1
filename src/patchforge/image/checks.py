"""What must hold before anything is built: each refusal by its own name."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import InputError, Refused
from patchforge.image.requirements import RequirementLock, check_wheel, engine_inputs, read_requirements
from patchforge.image.tool import requirements as tool_inputs
from patchforge.series.imagepin import ImagePin
from patchforge.series.parsed import Schema
from patchforge.series.pin import Flavor
from patchforge.series.project import Series
from patchforge.table.check import check_table
from patchforge.table.document import NAME, find_table, make_table


@dataclass(frozen=True, slots=True)
class Source:
    """The repository's state: the commit, empty when there is none, and what differs from it."""

    revision: str
    dirty: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything an image is made from, checked."""

    series: Series
    flavor: Flavor
    image: ImagePin
    engine: RequirementLock
    tool: RequirementLock
    source: Source

    @property
    def allowed_dirty(self) -> bool:
        """True when the project is not exactly what its repository has."""
        return bool(self.source.dirty) or not self.source.revision


def check_inputs(
    series: Series, image: ImagePin, schema: Schema, environment: Mapping[str, str], allow_dirty: bool
) -> Inputs:
    """Check pin, locks, table and repository.  Raises :class:`InputError` or :class:`Refused` for the first that is wrong."""
    assert series.pin is not None and series.project is not None
    label = f"series/{series.pin.id}"
    if not image.digest:
        raise InputError(
            f"[image.{image.flavor}]: the base {image.base or 'is missing, and'} has no digest",
            reason="base-unpinned",
            file=f"{label}/pin.toml",
            hint=f"'patchforge lock --image --flavor {image.flavor} --base NAME:TAG' asks the registry for it",
        )
    _locked(series)
    flavor = series.pin.flavor(image.flavor)
    folder = series.project / label
    needs = engine_inputs(series.pin, flavor, image)
    engine = read_requirements(folder / image.requirements, f"{label}/{image.requirements}", image, needs)
    check_wheel(engine, series.pin, flavor)
    tool = read_requirements(folder / image.tool, f"{label}/{image.tool}", image, tool_inputs())
    check_document(series, schema)
    source = source_state(series.project, _paths(series, image), environment)
    if not allow_dirty:
        refuse_dirty(source)
    return Inputs(series, flavor, image, engine, tool, source)


def _locked(series: Series) -> None:
    if series.lock is None or not series.lock_is_current:
        what = "there is no lock.toml" if series.lock is None else "the patches are not those lock.toml was made from"
        raise Refused(what, reason="lock", file=series.lock_label, hint="review the change, then run 'patchforge lock'")


def check_document(series: Series, schema: Schema) -> None:
    """PATCHES.md must hold the table the headers give."""
    assert series.project is not None
    try:
        document = (series.project / NAME).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            f"PATCHES.md cannot be read: {error}", reason="table-drift", file=NAME, hint="'patchforge table' fills it"
        ) from error
    table = make_table(series, schema)
    found = check_table(series, table, find_table(document, table.pin))
    if found.diff:
        first = found.problems[0]
        raise Refused(
            f"the table of patches is not what the headers give: {first.message}",
            reason="table-drift",
            file=first.file,
            line=first.line,
            hint="run 'patchforge table' and commit PATCHES.md",
        )


def _paths(series: Series, image: ImagePin) -> tuple[str, ...]:
    """What the image is made from, relative to the project."""
    assert series.pin is not None and series.project is not None
    folder = f"series/{series.pin.id}"
    own = [f"{folder}/{name}" for name in ("pin.toml", "series", "lock.toml", image.requirements, image.tool)]
    return (*own, NAME, *(p.path.relative_to(series.project).as_posix() for p in series.patches))


def source_state(project: Path, paths: tuple[str, ...], environment: Mapping[str, str]) -> Source:
    """Ask git which commit the project is at and which of ``paths`` are not as it has them (``'XY path'``).

    Ignored files count as untracked.  A project in no repository has no revision.
    """
    revision = _git(project, environment, "rev-parse", "--verify", "--quiet", "HEAD")
    if revision is None:
        return Source("", ())
    said = _git(project, environment, "status", "--porcelain=v1", "-z", "--ignored", "--no-renames", "--", *paths)
    if said is None:
        raise Refused("git could not say what has changed", reason="series-dirty")
    top = (_git(project, environment, "rev-parse", "--show-prefix") or "").strip()
    found = (item for item in said.split("\0") if item)
    return Source(revision.strip(), tuple(f"{item[:2]} {item[3:].removeprefix(top)}" for item in found))


def _git(project: Path, environment: Mapping[str, str], *words: str) -> str | None:
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    kept |= {"LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-C", str(project), *words]
    try:
        done = subprocess.run(command, env=kept, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


def refuse_dirty(source: Source) -> None:
    """Refuse what no commit holds."""
    hint = "commit it, or build with --allow-dirty, which marks the image"
    if not source.revision:
        raise Refused("the project is in no git repository", reason="series-untracked", hint=hint)
    untracked = [item[3:] for item in source.dirty if item[:2] in ("??", "!!")]
    changed = [item[3:] for item in source.dirty if item[:2] not in ("??", "!!")]
    for names, word, reason in (
        (untracked, "not in git", "series-untracked"),
        (changed, "not committed", "series-dirty"),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise Refused(f"{word}: {names[0]}{more}", reason=reason, file=names[0], hint=hint)
