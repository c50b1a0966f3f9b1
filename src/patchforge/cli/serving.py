"""The work of ``serve`` and ``health``."""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import replace
from pathlib import Path

from patchforge import resources
from patchforge.cli import targets
from patchforge.cli.session import print_report
from patchforge.errors import InputError, ManyProblems, PatchforgeError, TreeError
from patchforge.reports.model import Report
from patchforge.reports.serving import health_report, knobs_report, leftover_notes, refused_report, serve_report
from patchforge.series.project import Series
from patchforge.serving import launch
from patchforge.serving.configuration import Configuration
from patchforge.serving.document import read_document
from patchforge.serving.installed import Installed, read_installed, series_knobs
from patchforge.serving.leftovers import remove_leftovers
from patchforge.serving.machine import look
from patchforge.serving.resolve import find_mode, listening, parse_overrides, resolve
from patchforge.serving.secret import hidden_error, known_keys
from patchforge.serving.table import Table, build_table
from patchforge.tree.target import Target

MODES = "modes.yaml"


def load_table(file: Path | None) -> Table:
    """The table that ships, or ``file``, checked.  Raises :class:`ManyProblems` with the line of each."""
    shipped = resources.template_bytes(MODES)
    if file is None:
        return build_table(read_document(shipped, f"templates/{MODES}"))
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}", reason="modes") from error
    document = read_document(data, str(file))
    if data != shipped:  # the one that ships is checked by the tests, and checking costs more than starting
        from patchforge.serving.check import problems_of

        schema = read_document(resources.template_bytes("modes.schema.yaml"), "modes.schema.yaml").data
        problems = problems_of(document, schema)
        if problems:
            raise ManyProblems(f"{file} is no modes table", problems, reason="modes")
    return build_table(document)


def list_knobs(file: Path | None) -> Report:
    """Modes and knobs, as Markdown."""
    return knobs_report(load_table(file))


def serve(
    mode: str | None,
    where: targets.Where,
    assigned: tuple[str, ...],
    file: Path | None,
    full: bool,
    print_only: bool,
    format: str,
) -> Report:
    """Print the configuration; unless ``print_only``, verify first and become the server, so that this does not return.

    Nothing this raises holds the key: no refusal, and no traceback of a bug, which would go into a log.
    """
    table = load_table(file)
    if mode is None:
        names = ", ".join(f"{m.name} ({m.letter})" for m in table.modes)
        raise InputError("which mode?", reason="usage", hint=f"modes: {names}")
    environ = dict(os.environ)
    overrides: list[tuple[str, str]] = []
    try:
        overrides += parse_overrides(assigned)
        return _serve(table, mode, where, overrides, environ, full, print_only, format)
    except Exception as error:
        path = dict(overrides).get(table.security.key_file) or environ.get(table.security.key_file)
        keys = known_keys(environ, table.security.key, path)
        if isinstance(error, PatchforgeError):
            for key in keys:
                hidden_error(error, key)
            raise
        trace = "".join(traceback.format_exception(error))
        if not any(key.within(trace) for key in keys):
            raise
        for key in keys:
            trace = key.hide(trace)
    raise RuntimeError(f"with the key taken out:\n{trace}")


def _serve(
    table: Table,
    mode: str,
    where: targets.Where,
    overrides: list[tuple[str, str]],
    environ: dict[str, str],
    full: bool,
    print_only: bool,
    format: str,
) -> Report:
    find_mode(table, mode)
    where.check()
    series = targets.load(where)
    verified = None
    try:
        with targets.opened(where, series, write=False) as target:
            if target.info is None:
                raise TreeError(f"{target.label} holds no installed distribution", reason="tree")
            if not print_only:
                verified = _verified(series, target, full)
                if verified.status or verified.fields["source"] != "lock":
                    return refused_report(verified)
            installed = read_installed(series, target, table.registry)
            site = target.root.base
    except TreeError as error:
        if not (print_only and error.reason == "not-installed" and where.python is None):
            raise
        installed, site = _uninstalled(series), None
    gone = [] if print_only else remove_leftovers(table.leftovers)  # before the room in shared memory is looked at
    configuration = resolve(table, mode, environ, overrides, installed, look(environ))
    if print_only:
        return serve_report(configuration, "printed")
    configuration = replace(configuration, notes=(*leftover_notes(gone), *configuration.notes))
    if configuration.obstacles:
        return serve_report(configuration, "refused")
    assert site is not None and series.pin is not None and verified is not None
    launch.check_path(environ, series.pin.root, site)
    _check_model(table, configuration)
    program = launch.find_program(configuration.argv[0], where.python, where.tree is not None, environ)
    print_report(serve_report(configuration, "starting", program, verified), format, where.quiet)
    sys.stdout.flush()
    return launch.become(program, configuration, environ)


def _verified(series: Series, target: Target, full: bool) -> Report:
    from patchforge.engine.verify import full_check, verify
    from patchforge.reports.verifying import verify_report

    found = verify(series, target)
    extra = tuple(full_check(target, {f.path for f in found.files})) if full else ()
    return verify_report("serve", found, target.label, targets.shown(target.label), extra)


def _uninstalled(series: Series) -> Installed:
    """What can be said of a server whose distribution is not installed here."""
    assert series.pin is not None
    patches = frozenset(patch.name for patch in series.patches)
    return Installed(series.pin.distribution, series.pin.version, patches, None, series_knobs(series))


def _check_model(table: Table, configuration: Configuration) -> None:
    """A model named by a path must be there: the engine would look for it on the hub, minutes later."""
    model = next((s.text for s in configuration.settings if s.name == table.security.model), "")
    if not model.startswith(("/", "./", "../")) or (Path(model) / "config.json").is_file():
        return
    raise InputError(
        f"{table.security.model}={model} is no directory with a config.json",
        reason="model",
        hint="mount the model there, or name where it lies",
    )


def health(host: str | None, port: int | None, timeout: float) -> Report:
    """Ask the server."""
    from patchforge.serving.health import ask

    address, number = listening(load_table(None), os.environ)
    return health_report(ask(host or address, port or number, timeout))
