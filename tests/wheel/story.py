"""The maintainer's guide as a program: its console blocks, run one after the other, and what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/maintaining.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MESSAGE = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EDITOR = '#!/bin/sh\nif [ -f "$STORY_MESSAGE" ]; then cp "$STORY_MESSAGE" "$1"; rm "$STORY_MESSAGE"; fi\n'


@dataclass(frozen=True)
class Step:
    """A command of the page, what the page says it prints, and the message a person types when it opens an editor."""

    command: str
    printed: str
    message: str | None


def steps(text: str) -> list[Step]:
    """The commands of ``text`` in order.  A ``text`` block is what is typed into the editor that the last command opened."""
    found: list[Step] = []
    for block in re.finditer(r"^```(console|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if block[1] == "text":
            last = found.pop()
            found.append(Step(last.command, last.printed, block[2]))
            continue
        for part in re.split(r"^\$ ", block[2], flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            found.append(Step(command, printed, None))
    return found


class Teller:
    """Runs the steps in ``place``, always with the same people at the same time."""

    def __init__(self, place: Path) -> None:
        self.place = place / "project"
        self.place.mkdir()
        tools = place / "tools"
        tools.mkdir()
        for name, text in (
            ("patchforge", f'#!/bin/sh\nexec "{sys.executable}" -m patchforge "$@"\n'),
            ("edit", EDITOR),
        ):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        self.message = place / "message"
        people = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (
                ("NAME", "Maintainer"),
                ("EMAIL", "you@example.org"),
                ("DATE", "2026-12-01T12:00:00+0000"),
            )
        }
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
            **people,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(place),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_EDITOR": str(tools / "edit"),
            "GIT_SEQUENCE_EDITOR": "true",
            "GIT_PAGER": "cat",
            "STORY_MESSAGE": str(self.message),
            "LC_ALL": "C.UTF-8",
        }

    def run(self, step: Step) -> str:
        """What the command prints, errors too, as a terminal shows it."""
        if step.message is not None:
            self.message.write_text(step.message)
        done = subprocess.run(
            ["bash", "-c", step.command],
            cwd=self.place,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert not self.message.exists(), f"{step.command} opened no editor"
        return done.stdout.decode()
