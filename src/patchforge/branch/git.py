"""The git repository of a checked-out series, through GitPython; the environment is scrubbed here and nowhere else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchforge.errors import InputError, Refused

_OPTIONS = (
    "-c",
    "core.quotePath=true",
    "-c",
    "core.autocrlf=false",
    "-c",
    "diff.noprefix=false",
    "-c",
    "diff.mnemonicPrefix=false",
)


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its id, its parents' ids, the id of its tree, and its message as bytes."""

    id: str
    parents: tuple[str, ...]
    tree: str
    message: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One changed path between two trees; modes and ids are those of git, ``000000`` and zeros for absent."""

    path: str
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str


class Repository:
    """A repository with its work tree at ``directory``."""

    def __init__(self, directory: Path) -> None:
        from git.cmd import Git

        self.directory = directory
        self.dot_git = directory / ".git"
        self._git: Any = Git(str(directory))
        self._git.update_environment(**_environment(directory))

    def run(self, *words: str, stdin: Any = None) -> bytes:
        """Run git; return its output.  Raises :class:`Refused` with what git said."""
        from git.exc import GitCommandError

        try:
            done: bytes = self._git.execute(
                ["git", *_OPTIONS, *words], istream=stdin, stdout_as_string=False, strip_newline_in_stdout=False
            )
            return done
        except GitCommandError as error:
            said = str(error.stderr).strip().removeprefix("stderr: ").strip("'\n ")
            raise Refused(f"git {words[0]} failed: {said}", reason="git") from error

    def text(self, *words: str) -> str:
        """Run git; return its output as text without the last newline."""
        return self.run(*words).decode("utf-8", "surrogateescape").rstrip("\n")

    def commit(self, name: str) -> Commit:
        """The commit ``name``.  Raises :class:`Refused`."""
        raw = self.run("cat-file", "commit", name)
        head, _, message = raw.partition(b"\n\n")
        parents, tree, encoding = [], "", "utf-8"
        for line in head.decode("utf-8", "surrogateescape").split("\n"):
            key, _, value = line.partition(" ")
            if key == "parent":
                parents.append(value)
            elif key == "tree":
                tree = value
            elif key == "encoding":
                encoding = value
        try:
            message = message.decode(encoding).encode()
        except (LookupError, UnicodeDecodeError):
            pass  # not what it says: whoever reads the message will say so
        return Commit(self.text("rev-parse", "--verify", f"{name}^{{commit}}"), tuple(parents), tree, message)

    def commits(self, base: str, tip: str) -> list[Commit]:
        """The commits after ``base`` up to ``tip``, oldest first."""
        names = self.text("rev-list", "--reverse", f"{base}..{tip}").split()
        return [self.commit(name) for name in names]

    def descends(self, commit: str, ancestor: str) -> bool:
        """True when ``ancestor`` is ``commit`` or one of its ancestors."""
        return not self.text("rev-list", "--max-count=1", ancestor, f"^{commit}")

    def changed(self, old: str, new: str) -> list[Entry]:
        """What differs between two trees or commits, without renames."""
        out = self.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", old, new)
        return list(_entries(out))

    def blob(self, commit: str, path: str) -> bytes | None:
        """The content of ``path`` in ``commit``; ``None`` when it is not there."""
        if "\n" in path:
            return None
        try:
            return bytes(self._git.get_object_data(f"{commit}:{path}")[3])
        except ValueError:
            return None

    def close(self) -> None:
        """End the helper processes."""
        self._git.clear_cache()


def _entries(out: bytes) -> Iterator[Entry]:
    fields = out.split(b"\0")
    for meta, path in zip(fields[::2], fields[1::2], strict=False):
        match = re.fullmatch(rb":(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) [A-Z]\d*", meta)
        if match is None:
            continue
        old_mode, new_mode, old_id, new_id = (part.decode() for part in match.groups())
        yield Entry(path.decode("utf-8", "surrogateescape"), old_mode, new_mode, old_id, new_id)


def _environment(directory: Path) -> dict[str, str]:
    """What git may not take from the caller: configuration, other repositories, prompts, hooks' variables."""
    return {
        "GIT_DIR": str(directory / ".git"),
        "GIT_WORK_TREE": str(directory),
        "GIT_INDEX_FILE": str(directory / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(directory / ".git/objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "0",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_EXTERNAL_DIFF": "",
        "GIT_DIFF_OPTS": "",
        "GIT_LITERAL_PATHSPECS": "1",
        "LC_ALL": "C",
    }


def existing(directory: Path) -> Repository:
    """The repository a series was checked out to.  Raises :class:`InputError`."""
    if not (directory / ".git").is_dir():
        raise InputError(
            f"{directory} is not a checked-out series", reason="usage", hint="make one with 'patchforge checkout DIR'"
        )
    return Repository(directory)
