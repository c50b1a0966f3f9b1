"""Git in a checked-out series, as a user runs it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from demo import Demo

USER = {
    "GIT_AUTHOR_NAME": "User",
    "GIT_AUTHOR_EMAIL": "user@example.org",
    "GIT_COMMITTER_NAME": "User",
    "GIT_COMMITTER_EMAIL": "user@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_EDITOR": "true",
}


@dataclass
class Work:
    """The repository at ``directory``, of the series of ``demo``."""

    demo: Demo
    directory: Path

    def git(self, *words: str, stdin: str | None = None, **env: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.directory,
            env={**os.environ, **USER, **env},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def files(self) -> dict[str, bytes]:
        """The files of the project that refresh may write."""
        root = self.demo.root
        return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
