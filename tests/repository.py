"""An upstream repository written by git itself, commit by commit."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_NAME = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}


@dataclass
class Upstream:
    """A repository at ``directory``; every commit gets the next minute as its date."""

    directory: Path
    minutes: int = 0

    @classmethod
    def create(cls, directory: Path, *words: str) -> Upstream:
        directory.mkdir(parents=True)
        made = cls(directory)
        made.git("init", "--quiet", "--initial-branch=main", *words)
        return made

    def git(self, *words: str) -> str:
        """Run git there; return what it prints."""
        date = f"2026-01-01T{self.minutes // 60:02}:{self.minutes % 60:02}:00Z"
        env = {**_NAME, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(["git", *words], cwd=self.directory, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str, files: dict[str, bytes] | None = None) -> str:
        """Commit ``files`` (none: an empty commit); return the id."""
        self.minutes += 1
        for path, data in (files or {}).items():
            (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / path).write_bytes(data)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def tag(self, name: str) -> None:
        """Tag the newest commit."""
        self.git("tag", name)
