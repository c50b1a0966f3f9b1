"""From a mode's name, the environment and the command line to a :class:`Configuration`, or to everything that is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from patchforge.errors import InputError, ManyProblems, Problem
from patchforge.serving.command import outputs_of
from patchforge.serving.configuration import Configuration, Setting
from patchforge.serving.expressions import condition_names, fill, holds
from patchforge.serving.guards import check_bind, check_environment, check_extra, check_key_free
from patchforge.serving.installed import Installed
from patchforge.serving.machine import Machine
from patchforge.serving.secret import read_key
from patchforge.serving.table import Knob, Mode, Table
from patchforge.serving.values import WrongValue, nearest, parse_value, show

SET, ENVIRONMENT, MODE, DEFAULT = "--set", "environment", "mode", "default"


def find_mode(table: Table, name: str) -> Mode:
    """The mode called ``name``, or by its letter.  Raises :class:`InputError`."""
    for mode in table.modes:
        if name in (mode.name, mode.letter, mode.letter.lower()):
            return mode
    names = [mode.name for mode in table.modes]
    near = nearest(name, names)
    hint = f"did you mean '{near}'?" if near else f"modes: {', '.join(names)}"
    raise InputError(f"no mode '{name}'", reason="mode", hint=hint)


def parse_overrides(words: Sequence[str]) -> list[tuple[str, str]]:
    """``NAME=VALUE`` words, split.  Raises :class:`InputError`, which shows no value."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name or not value:
            raise InputError("--set takes NAME=VALUE, with neither empty", reason="usage")
        if name in found:
            raise InputError(f"--set {name} is given twice", reason="usage")
        found[name] = value
    return list(found.items())


def resolve(
    table: Table,
    mode_name: str,
    environ: Mapping[str, str],
    overrides: Sequence[tuple[str, str]],
    installed: Installed,
    machine: Machine,
) -> Configuration:
    """The configuration.  Raises :class:`InputError` or :class:`ManyProblems` with all that is refused."""
    asked = find_mode(table, mode_name)
    problems: list[Problem] = []
    knobs = _knobs(table, installed)
    given = _given(table, knobs, environ, overrides, problems)
    values: dict[str, Any] = {
        **machine.facts(),
        "profile": asked.profile,
        "mode": asked.name,
        "distribution": installed.distribution,
    }
    settings = _settings(knobs, asked, given, values, installed, problems)
    if problems:
        raise _refused(problems)
    mode = _recognised(table, asked, values, settings, problems)
    obstacles = _rules(table, values, settings, installed, problems)
    key, key_source = read_key(environ, table.security.key, values.get(table.security.key_file), table.security.create)
    outputs = outputs_of(table, knobs, values, environ, installed)
    extra = next((s.value for s, k in zip(settings, knobs, strict=True) if k.kind == "arguments" and s.value), ())
    check_bind(table.security, values.get(table.security.host), key, installed, problems)
    check_environment(table, knobs, outputs, environ, key, installed, problems)
    shadows = check_extra(table, knobs, extra, problems)
    argv = (*outputs.program, *outputs.flags, *extra)
    check_key_free(key, (*argv, *(setting.text for setting in settings)), outputs.env, problems)
    if problems:
        raise _refused(problems)
    notes = [*_notes(table, asked, mode, values, settings, installed, machine), *shadows]
    notes += _near_misses(knobs, environ)
    if key is not None and key_source == table.security.key and values.get(table.security.key_file) is not None:
        notes.append(f"{table.security.key} is used, not the file of {table.security.key_file}")
    return Configuration(
        mode,
        argv,
        outputs.env,
        outputs.unset,
        tuple(settings),
        key,
        table.security.key,
        key_source,
        tuple(notes),
        tuple(obstacles),
    )


def _refused(problems: list[Problem]) -> ManyProblems:
    return ManyProblems("the server cannot be started like this", problems, reason=problems[0].reason)


def _knobs(table: Table, installed: Installed) -> tuple[Knob, ...]:
    """The table's knobs, and those patches of the series add that the table does not have in its own words."""
    taken = {output.name for knob in table.knobs for output in knob.becomes} | {knob.name for knob in table.knobs}
    return (*table.knobs, *(knob for _, knob in installed.knobs if knob.name not in taken))


def _given(
    table: Table,
    knobs: tuple[Knob, ...],
    environ: Mapping[str, str],
    overrides: Sequence[tuple[str, str]],
    problems: list[Problem],
) -> dict[str, tuple[Any, str]]:
    """What was set by hand, by knob: value and source.  An empty environment variable sets nothing."""
    by_name = {knob.name: knob for knob in knobs}
    texts = {name: (environ[name], ENVIRONMENT) for name in by_name if environ.get(name)}
    for name, text in overrides:
        if name in by_name:
            texts[name] = (text, SET)
        elif name == table.security.key:
            hint = f"set {name} in the environment, or a file in {table.security.key_file}"
            problems.append(Problem("the key does not belong on a command line", hint=hint, reason="key"))
        else:
            near = nearest(name, list(by_name))
            hint = f"did you mean '{near}'?" if near else "'patchforge serve --knobs' lists them"
            problems.append(Problem(f"no knob '{name}'", hint=hint, reason="knob"))
    given: dict[str, tuple[Any, str]] = {}
    for name, (text, source) in texts.items():
        try:
            given[name] = (parse_value(by_name[name], text), source)
        except WrongValue as error:
            problems.append(Problem(f"{name} ({source}): {error}", hint=error.hint, reason="value"))
    return given


def _settings(
    knobs: tuple[Knob, ...],
    mode: Mode,
    given: Mapping[str, tuple[Any, str]],
    values: dict[str, Any],
    installed: Installed,
    problems: list[Problem],
) -> list[Setting]:
    """Every knob in order; ``values`` gets what counts, ``None`` where a knob does not."""
    found = []
    for knob in knobs:
        lacking = installed.lacks(knob.patches)
        applies = holds(knob.applies, values)
        if knob.name in given:
            value, source = given[knob.name]
        elif knob.name in mode.choose:
            value, source = mode.choose[knob.name], MODE
        else:
            value, source = _default(knob, values), DEFAULT
        state = "on"
        if not applies:
            state = "ignored"
        elif lacking:
            state = "unavailable"
            # `off` asks for nothing, so it needs nothing.
            if source in (SET, ENVIRONMENT) and value not in (None, False, "off"):
                hint = f"leave {knob.name} out, or serve with a series that carries it"
                text = f"{knob.name} ({source}) needs the patch {', '.join(lacking)}, which the series does not carry"
                problems.append(Problem(text, hint=hint, reason="patch"))
        values[knob.name] = value if state == "on" else None
        found.append(Setting(knob.name, value, show(value), source, state))
    return found


def _default(knob: Knob, values: Mapping[str, Any]) -> Any:
    for case in knob.default:
        if holds(case.when, values):
            return fill(case.value, values)
    return None


def _recognised(
    table: Table, asked: Mode, values: Mapping[str, Any], settings: list[Setting], problems: list[Problem]
) -> Mode:
    """The mode the values are; another than the asked one is refused, unless a profile's own mode was asked for."""
    mine = [mode for mode in table.modes if mode.profile == asked.profile]
    own = next(mode for mode in mine if mode.when is None)
    mode = next((mode for mode in mine if mode.when is not None and holds(mode.when, values)), own)
    if mode is not asked and asked is not own:
        hand = [s for s in settings if s.source in (SET, ENVIRONMENT) and s.state != "ignored"]
        # Those the mode is recognised by, or else any: one of them decided against it.
        against = [s for s in hand if s.name in (asked.when or {})] or hand
        shown = " and ".join(f"{s.name}={s.text} ({s.source})" for s in against)
        text = f"the mode {asked.name} and {shown} do not go together"
        problems.append(Problem(text, hint=f"that would be the mode {mode.name}", reason="conflict"))
    return mode


def _rules(
    table: Table,
    values: Mapping[str, Any],
    settings: list[Setting],
    installed: Installed,
    problems: list[Problem],
) -> list[Problem]:
    """Conflicts go to ``problems``; what only stands in the way here is returned."""
    here: list[Problem] = []
    by = {setting.name: setting for setting in settings}
    for rule in table.conflicts:
        if holds(rule.when, values):
            text = f"{_shown(rule.when, values, by)}: {rule.text}"
            problem = Problem(text, hint=rule.instead, reason="machine" if rule.here else "conflict")
            (here if rule.here else problems).append(problem)
    for rule in table.requires:
        lacking = installed.lacks(rule.patches)
        if lacking and holds(rule.when, values):
            text = (
                f"{_shown(rule.when, values, by)} needs the patch {', '.join(lacking)}, which the series does not carry"
            )
            here.append(Problem(text, hint=rule.instead, reason="patch"))
    return here


def _shown(condition: Mapping[str, Any], values: Mapping[str, Any], by: Mapping[str, Setting]) -> str:
    parts = []
    for name in dict.fromkeys(condition_names(condition)):
        setting = by.get(name)
        if setting is not None:
            parts.append(f"{name}={setting.text} ({setting.source})")
        elif values.get(name) is not None:
            value = values[name]
            parts.append(f"{name}={value:.1f}" if isinstance(value, float) else f"{name}={value}")
    return ", ".join(parts)


def _notes(
    table: Table,
    asked: Mode,
    mode: Mode,
    values: Mapping[str, Any],
    settings: list[Setting],
    installed: Installed,
    machine: Machine,
) -> list[str]:
    notes = []
    if mode is not asked:
        notes.append(f"with these values this is the mode {mode.name} ({mode.letter}): {mode.purpose}")
    for setting in settings:
        if setting.state == "ignored" and setting.source in (SET, ENVIRONMENT):
            notes.append(
                f"{setting.name}={setting.text} ({setting.source}) is ignored: the mode {mode.name} has no use for it"
            )
        if setting.state == "unavailable" and setting.value not in (None, False, "off"):
            knob = table.knob(setting.name)
            lacking = ", ".join(installed.lacks(knob.patches)) if knob else ""
            notes.append(f"{setting.name} stays off: the series does not carry {lacking}")
    notes += [rule.text for rule in table.notes if holds(rule.when, values)]
    if machine.sm is not None:
        notes += [
            f"figure for this mode: {figure.text} ({figure.source})"
            for figure in mode.figures
            if figure.sm == machine.sm
        ]
        if mode.figures and all(figure.sm != machine.sm for figure in mode.figures):
            have = ", ".join(sorted({f"sm{figure.sm}" for figure in mode.figures}))
            notes.append(f"no figure of this mode is measured for sm{machine.sm}: the published ones are for {have}")
    return notes


def _near_misses(knobs: tuple[Knob, ...], environ: Mapping[str, str]) -> list[str]:
    """Environment variables that are almost a knob, and set nothing."""
    import difflib

    names = [knob.name for knob in knobs]
    notes = []
    for name in sorted(environ):
        if name in names or not environ[name] or not name.isprintable():
            continue
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.86)
        if near and len(name) > 4:
            notes.append(f"{name} is set in the environment and is no knob; {near[0]} is one")
    return notes


def listening(table: Table, environ: Mapping[str, str]) -> tuple[str, int]:
    """Host and port a server started with ``environ`` listens on.  Raises :class:`InputError`."""
    found = []
    for name in (table.security.host, table.security.port):
        knob = table.knob(name)
        assert knob is not None
        text = environ.get(name, "")
        try:
            found.append(parse_value(knob, text) if text else _default(knob, {}))
        except WrongValue as error:
            raise InputError(f"{name}: {error}", reason="value", hint=error.hint) from None
    return found[0], found[1]
