"""The reports of ``serve`` and ``health``."""

from __future__ import annotations

import shlex
from dataclasses import replace

from patchforge.errors import Problem
from patchforge.reports.model import Block, Cell, Grid, Line, Report
from patchforge.serving.configuration import Configuration
from patchforge.serving.health import Health
from patchforge.serving.leftovers import IN_USE, Leftover
from patchforge.serving.markdown import table_lines
from patchforge.serving.secret import HIDDEN, hidden_problem
from patchforge.serving.table import Table


def serve_report(
    configuration: Configuration, outcome: str, program: str | None = None, verified: Report | None = None
) -> Report:
    """``outcome``: ``printed``, ``starting`` (with the ``program`` and what ``verified`` found) or ``refused``."""
    c = configuration
    mode = c.mode
    blocks: list[Block] = []
    if verified is not None:
        blocks += [block for block in verified.blocks if isinstance(block, Line)]
    blocks.append(Line(f"mode {mode.name} ({mode.letter}): {mode.purpose}", "head"))
    on = [s for s in c.settings if s.state == "on" and (s.value is not None or s.source != "default")]
    style = {"default": "dim", "mode": "dim"}
    rows = tuple((Cell(s.name), Cell(s.text), Cell(s.source, style.get(s.source, ""))) for s in on)
    blocks.append(Grid(("knob", "value", "from"), rows))
    env = dict(c.env)
    if c.key is not None:
        env[c.key_variable] = HIDDEN
    argv = [program or c.argv[0], *c.argv[1:]]
    if c.key is not None:
        blocks.append(Line(f"# {c.key_variable} is set, from {c.key_source}", "dim"))
    blocks += [Line(f"{name}={shlex.quote(value)} \\") for name, value in c.env]
    blocks += [Line(text) for text in _command_lines(argv)]
    obstacles = c.obstacles if outcome == "refused" else tuple(replace(p, severity="warning") for p in c.obstacles)
    if outcome == "refused":
        blocks.append(Line("the server was not started", "bad"))
    fields = {
        "outcome": outcome,
        "mode": mode.name,
        "letter": mode.letter,
        "profile": mode.profile,
        "argv": argv,
        "env": env,
        "unset": list(c.unset),
        "settings": [{"name": s.name, "value": s.text, "source": s.source, "state": s.state} for s in c.settings],
    }
    report = Report(
        "serve",
        1 if outcome == "refused" else 0,
        verified.patches if verified is not None else (),
        fields,
        tuple(blocks),
        obstacles,
        (*(verified.notes if verified is not None else ()), *c.notes),
    )
    return report if c.key is None else _hidden(report, c)


def _hidden(report: Report, configuration: Configuration) -> Report:
    """The last line of defence: notes and problems say what people typed, and people type keys anywhere."""
    key = configuration.key
    assert key is not None
    return replace(
        report,
        problems=tuple(hidden_problem(problem, key) for problem in report.problems),
        notes=tuple(key.hide(note) for note in report.notes),
    )


def _command_lines(argv: list[str]) -> list[str]:
    """The command as a person reads it and a shell takes it: a flag with its value on each line."""
    lines: list[list[str]] = [[]]
    for word in argv:
        if word.startswith("--") and lines[-1]:
            lines.append([])
        lines[-1].append(word)
    texts = [shlex.join(words) for words in lines]
    return [("" if n == 0 else "  ") + text + (" \\" if n < len(texts) - 1 else "") for n, text in enumerate(texts)]


def leftover_notes(found: list[Leftover]) -> list[str]:
    """What became of a dead engine's files; those in use are nobody's business."""
    notes = [f"removed {f.path}, which a dead engine left ({f.size} bytes)" for f in found if f.removed]
    return notes + [f"{f.path} stays: {f.why}" for f in found if not f.removed and f.why != IN_USE]


def refused_report(verified: Report) -> Report:
    """The tree is not what the lock says, or there is no lock of this series, so nothing was started."""
    problems = verified.problems
    if not problems and verified.fields["source"] != "lock":
        hint = "write it where the patches are reviewed, with 'patchforge lock'"
        problems = (Problem("no lock.toml vouches for this series", hint=hint, reason="lock"),)
    elif not problems:
        text = "the series is not applied to the installed tree"
        problems = (Problem(text, hint="run 'patchforge apply'", reason="not-applied"),)
    blocks = (*verified.blocks, Line("the server was not started", "bad"))
    fields = {**verified.fields, "outcome": "refused"}
    return replace(verified, status=1, fields=fields, blocks=blocks, problems=problems)


def knobs_report(table: Table) -> Report:
    """Modes and knobs, as the documentation has them."""
    fields = {
        "modes": [{"name": m.name, "letter": m.letter, "profile": m.profile, "for": m.purpose} for m in table.modes],
        "knobs": [{"name": k.name, "what": k.what, "type": k.kind, "patches": list(k.patches)} for k in table.knobs],
    }
    return Report("serve", 0, (), fields, tuple(Line(text) for text in table_lines(table)))


def health_report(health: Health) -> Report:
    """Well or not."""
    if health.well:
        return Report("health", 0, (), {"url": health.url, "code": 200}, (Line(f"{health.url}: well", "good"),))
    why = health.why or f"HTTP status {health.code}"
    fields = {"url": health.url, "code": health.code}
    return Report("health", 1, (), fields, (), (Problem(f"{health.url}: {why}", reason="unwell"),))
