"""The work of ``build-image``: from checked inputs to a directory that appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from patchforge.cli import targets
from patchforge.cli.session import cache_directory
from patchforge.errors import InputError, Refused
from patchforge.image import clients, facts
from patchforge.image.checks import Inputs, check_inputs
from patchforge.image.compare import first_difference, first_image_difference
from patchforge.image.context import build_context
from patchforge.image.finished import check_image
from patchforge.image.native import Built, append, open_base
from patchforge.image.output import LayerLine, context_digest, link_wheels, statements, write_files, write_image_files
from patchforge.image.staging import staged
from patchforge.releases.cache import fetch
from patchforge.series.parsed import Schema

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for."""

    backend: str
    out: Path | None
    base: Path | None
    name: str | None
    queue: str
    check: bool
    push: str | None
    plain: bool
    allow_dirty: bool
    arguments: tuple[str, ...]
    pip_conf: Path | None
    wheels: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was built: where, under which digest, of which layers; ``difference`` is what ``--check`` found."""

    inputs: Inputs
    backend: str
    out: Path
    name: str
    digest: str
    layers: tuple[LayerLine, ...]
    built: Built | None
    checked: bool
    pushed: str | None


def build(where: targets.Where, flavor: str | None, asked: Asked) -> Outcome:
    """Check, build, check again where asked, push where asked.  Raises with nothing left behind."""
    series = targets.load(where)
    assert series.pin is not None and series.project is not None
    image = series.pin.image(flavor)
    _usage(asked)
    schema = targets.schema()
    inputs = check_inputs(series, image, schema, os.environ, asked.allow_dirty)
    if asked.push is not None and inputs.allowed_dirty:
        raise Refused(
            "an image of what no commit holds is not pushed",
            reason="series-untracked" if not inputs.source.revision else "series-dirty",
            hint="commit first",
        )
    name = clients.check_reference(asked.name or facts.default_name(inputs))
    out = asked.out or series.project / "build" / "image" / f"{series.pin.id}-{image.flavor}"
    with targets.progress(where.quiet) as show, staged(out) as work:
        digest, layers, built = _once(inputs, schema, asked, name, work, show)
        if asked.check:
            _again(inputs, schema, asked, name, work, show)
        if asked.push is not None:
            show("pushing", 0, 0)
            clients.push(work / "layout", asked.push, os.environ, work / "build.log", asked.plain)
    return Outcome(inputs, asked.backend, out, name, digest, layers, built, asked.check, asked.push)


def _usage(asked: Asked) -> None:
    if asked.push is not None:
        if asked.backend == "context":
            raise InputError(
                "a build context cannot be pushed: it is no image yet", reason="usage", hint="choose --backend oci"
            )
        clients.check_reference(asked.push)
    if asked.base is not None and asked.backend != "oci":
        raise InputError("--base is for the oci backend; the others take the base by its name", reason="usage")
    if asked.wheels and asked.backend == "oci":
        raise InputError("--wheels is for a build context; the oci backend installs nothing", reason="usage")
    if asked.backend in ("context", "oci") and (asked.arguments or asked.pip_conf):
        raise InputError("--build-option and --pip-conf are for a client that builds", reason="usage")


def _once(
    inputs: Inputs, schema: Schema, asked: Asked, name: str, work: Path, show: Progress, fresh: bool = False
) -> tuple[str, tuple[LayerLine, ...], Built | None]:
    """Build into the empty directory ``work``."""
    started = datetime.now(UTC)
    if asked.backend == "oci":
        base = open_base(inputs, asked.base)
        built = append(
            inputs, schema, base, _wheel(inputs, show), work / "layout", name, cache_directory(), fresh, show
        )
        digest, _, layers = write_image_files(work, inputs, asked.backend, name, asked.queue, started, built)
        return digest, layers, built
    files = build_context(inputs, name, asked.queue, asked.wheels)
    context = work / "context"
    write_files(context, files)
    if asked.wheels:
        link_wheels(context / "wheels", inputs, cache_directory(), lambda text: show(text, 0, 0))
    digest = context_digest(files)
    if asked.backend == "context":
        write_files(work, {"context.digest": f"{digest}\n".encode()})
        write_files(work, statements(inputs, asked.backend, f"{name} (build context)", digest, started, {}))
        return digest, (), None
    log, layout = work / "build.log", work / "layout"
    show(f"{asked.backend} builds", 0, 0)
    for command in clients.commands(
        asked.backend, context, layout, name, inputs.image.platform, asked.arguments, asked.pip_conf
    ):
        clients.run(command, os.environ, log)
    check_image(layout, inputs.image.platform, inputs.series)
    digest, _, layers = write_image_files(work, inputs, asked.backend, name, asked.queue, started, None)
    return digest, layers, None


def _again(inputs: Inputs, schema: Schema, asked: Asked, name: str, first: Path, show: Progress) -> None:
    """Build once more, in another directory and at another time.  Raises :class:`Refused` with the first difference."""
    with tempfile.TemporaryDirectory(prefix="patchforge-check-") as folder:
        second = Path(folder) / "second" / "build"
        second.mkdir(parents=True)
        _once(inputs, schema, asked, name, second, show, fresh=True)
        different = first_difference(first / "context", second / "context") if asked.backend != "oci" else None
        if different is None and asked.backend != "context":
            different = first_image_difference(first / "layout", second / "layout")
    if different is not None:
        raise Refused(
            f"a second build differs: {different}",
            reason="not-reproducible",
            hint="nothing was left; what wrote that file looks at a clock, a path or the machine",
        )


def _wheel(inputs: Inputs, show: Progress) -> Path:
    assert inputs.series.pin is not None
    wheel = targets.suitable(inputs.flavor)
    return fetch(inputs.series.pin, inputs.flavor, wheel, cache_directory(), lambda text: show(text, 0, 0))
