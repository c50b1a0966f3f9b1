"""A git repository of the upstream project, read only: its trees, and what its log says of a change.

Everything goes through GitPython with an environment that takes nothing from the caller and with every setting off that
could make git run a program or reach the network: the repository may be anybody's.
"""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from patchforge.errors import InputError, Refused
from patchforge.releases.contents import Opened

_OPTIONS = (
    *("-c", "core.quotePath=true", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"),
    *("-c", "log.mailmap=false", "-c", "blame.ignoreRevsFile=", "-c", "core.attributesFile=", "-c", "grep.threads=1"),
)
_LOG = "%H%x00%s%x00%b%x00%x1e"
_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{7,40})", re.MULTILINE)
_PICKED = re.compile(r"^\(cherry picked from commit ([0-9a-f]{7,40})\)", re.MULTILINE)
_AGAIN = re.compile(r"\b(?:re-?land|re-?apply)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Logged:
    """One commit of the first-parent log: its id, its subject, and the rest of its message."""

    id: str
    subject: str
    body: str

    @property
    def short(self) -> str:
        """As a person quotes it."""
        return f"{self.id[:9]} ({self.subject})"


class Repository:
    """The repository at ``directory``: one with a work tree, a linked work tree, or a bare one."""

    def __init__(self, directory: Path) -> None:
        from git.cmd import Git

        self.directory = directory
        git_dir = _git_dir(directory)
        if git_dir is None:
            raise InputError(f"{directory} is not a git repository", reason="usage")
        self._git: Any = Git(str(directory))
        self._git.update_environment(**_environment(directory, git_dir))

    def run(self, *words: str) -> bytes:
        """Run git; return its output.  Raises :class:`Refused` with what git said."""
        from git.exc import GitCommandError

        try:
            done: bytes = self._git.execute(
                ["git", *_OPTIONS, *words], stdout_as_string=False, strip_newline_in_stdout=False
            )
            return done
        except GitCommandError as error:
            said = str(error.stderr).strip().removeprefix("stderr: ").strip("'\n ")
            raise Refused(f"git {words[0]} failed in {self.directory}: {said}", reason="git") from error

    def commit(self, ref: str) -> str | None:
        """The id of the commit ``ref`` names; ``None`` when it names none."""
        if ref.startswith("-"):
            return None
        try:
            return (
                self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").decode().strip()
            )
        except Refused:
            return None

    def tag_of(self, version: str) -> str | None:
        """The commit tagged as release ``version``."""
        for name in (f"v{version}", version, f"release-{version}"):
            found = self.commit(f"refs/tags/{name}")
            if found is not None:
                return found
        return None

    def blob(self, id: str) -> bytes:
        """The content of a blob.  Raises :class:`Refused` where the repository does not have it."""
        try:
            return bytes(self._git.get_object_data(id)[3])
        except ValueError as error:
            raise Refused(
                f"{self.directory} lacks the object {id[:9]}",
                reason="git",
                hint="is it a partial clone? nothing is fetched for it",
            ) from error

    def log(self, commit: str) -> list[Logged]:
        """The first-parent log of ``commit``, newest first."""
        text = self.run("log", "--first-parent", f"--format={_LOG}", "--end-of-options", commit, "--")
        out = []
        for record in text.decode("utf-8", "replace").split("\x1e"):
            fields = record.lstrip("\n").split("\0")
            if len(fields) >= 3:
                out.append(Logged(fields[0], fields[1], fields[2]))
        return out

    def blamed(self, commit: str, path: str, first: int, last: int) -> set[str]:
        """The commits that the lines ``first`` to ``last`` of ``path`` come from; ``commit`` is an id."""
        try:
            out = self.run("blame", "--no-textconv", "--porcelain", "-L", f"{first},{last}", commit, "--", path)
        except Refused as error:
            if "no such path" in error.message or "has only" in error.message:
                return set()  # the repository is of another layout than the tree: it has no say
            raise
        return {m.decode() for m in re.findall(rb"(?m)^([0-9a-f]{40}) \d+ \d+", out)}

    def close(self) -> None:
        """End the helper processes."""
        self._git.clear_cache()


class AtCommit(Opened):
    """The files below the package directory at a commit."""

    def __init__(self, repository: Repository, commit: str, root: str) -> None:
        self._repository = repository
        self.prefix, self._entries = "", {}
        for prefix in (root, f"src/{root}", f"python/{root}") if root else ("",):
            out = repository.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", f"{prefix}/" if prefix else ".")
            entries = _tree_entries(out, f"{prefix}/" if prefix else "")
            if entries:
                self.prefix, self._entries = f"{prefix}/" if prefix else "", entries
                break
        else:
            raise InputError(f"the commit {commit[:9]} of {repository.directory} has no {root}/", reason="usage")

    def read(self, path: str) -> tuple[bytes, bool] | None:
        """Content and executable bit; links are not followed."""
        entry = self._entries.get(path)
        return None if entry is None else (self._repository.blob(entry[1]), entry[0] == "100755")

    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted(self._entries)

    def checksum(self, path: str) -> tuple[int, int] | None:
        """Computed: the file lies here."""
        found = self.read(path)
        return None if found is None else (zlib.crc32(found[0]), len(found[0]))


class History:
    """What the log of a release says; ``base`` is the commit of the pin, where it is known."""

    def __init__(self, repository: Repository, commit: str, base: str | None = None, prefix: str = "") -> None:
        self._repository, self._commit, self._base, self._prefix = repository, commit, base, prefix

    @cached_property
    def _log(self) -> list[Logged]:
        return self._repository.log(self._commit)

    def carries(self, number: int) -> Logged | None:
        """The newest commit of the release that brings ``(#number)``; a revert of it is none."""
        return next((c for c in self._log if _names(c, number) and not _is_revert(c)), None)

    def reverted(self, number: int) -> Logged | None:
        """The commit that took ``(#number)`` back, when nothing brought it again afterwards."""
        landed = {c.id for c in self._log if _names(c, number) and not _is_revert(c)}
        picked = {m for c in self._log if c.id in landed for m in _PICKED.findall(c.body)}
        for commit in self._log:  # newest first: the first word counts
            if commit.id in landed:
                return None
            if _is_revert(commit):
                undone = _REVERTS.findall(commit.body)
                if _names(commit, number) or any(i.startswith(u) for u in undone for i in landed | picked):
                    return commit
            elif _AGAIN.search(commit.subject) and f"#{number}" in commit.subject + commit.body:
                return None
        return None

    def merged(self, commit: str) -> Logged | None:
        """The commit of the release with the id ``commit``, or one that says it was picked from it."""
        return next(
            (c for c in self._log if c.id == commit or any(map(commit.startswith, _PICKED.findall(c.body)))), None
        )

    def later(self, landed: Logged, path: str, first: int, last: int) -> list[Logged]:
        """Commits after ``landed`` that lines ``first`` to ``last`` of ``path`` come from, newest first."""
        blamed = self._repository.blamed(self._commit, self._prefix + path, first, last)
        out: list[Logged] = []
        for commit in self._log:
            if commit.id == landed.id:
                return out
            if commit.id in blamed:
                out.append(commit)
        return out

    def lost(self) -> list[Logged]:
        """What the pin's own branch had, and this release lacks: commits of the pin whose change is not in the release.

        A cherry-pick has another id, so a change counts as there when its ``(#N)`` or its subject is.
        """
        if self._base is None:
            return []
        mine = {c.id for c in self._log}
        numbers = {n for c in self._log if not _is_revert(c) for n in re.findall(r"\(#(\d+)\)", c.subject)}
        subjects = {c.subject for c in self._log}
        out = []
        for commit in self._repository.log(self._base):
            if commit.id in mine:
                break  # from here on the two share their history
            found = re.findall(r"\(#(\d+)\)", commit.subject)
            if not (set(found) & numbers) and commit.subject not in subjects:
                out.append(commit)
        return out


def _names(commit: Logged, number: int) -> bool:
    return f"(#{number})" in commit.subject


def _is_revert(commit: Logged) -> bool:
    return bool(re.match(r"(?:\[[^\]]*\] ?)*Revert\b", commit.subject)) and not _AGAIN.search(commit.subject)


def _tree_entries(out: bytes, prefix: str) -> dict[str, tuple[str, str]]:
    entries = {}
    for record in out.split(b"\0"):
        meta, tab, path = record.partition(b"\t")
        fields = meta.decode().split()
        if tab and fields[1] == "blob" and fields[0] in ("100644", "100755"):
            entries[path.decode("utf-8", "surrogateescape").removeprefix(prefix)] = (fields[0], fields[2])
    return entries


def _git_dir(directory: Path) -> Path | None:
    dot = directory / ".git"
    if dot.is_dir():
        return dot
    if dot.is_file():  # a linked work tree
        match = re.match(r"gitdir: (.+)\n?\Z", dot.read_text(errors="surrogateescape"))
        return directory / match[1] if match else None
    return directory if (directory / "HEAD").is_file() and (directory / "objects").is_dir() else None


def is_repository(directory: Path) -> bool:
    """True when ``directory`` is the top of a git repository."""
    return directory.is_dir() and _git_dir(directory) is not None


def _environment(directory: Path, git_dir: Path) -> dict[str, str]:
    """What git may not take from the caller, nor do: other repositories, configuration, prompts, fetching, replacing."""
    common = git_dir
    if (git_dir / "commondir").is_file():
        common = git_dir / (git_dir / "commondir").read_text().strip()
    return {
        "GIT_DIR": str(git_dir),
        "GIT_COMMON_DIR": str(common),
        "GIT_WORK_TREE": str(directory),
        "GIT_INDEX_FILE": str(git_dir / "index"),
        "GIT_OBJECT_DIRECTORY": str(common / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_NAMESPACE": "",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "0",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_EXTERNAL_DIFF": "",
        "GIT_PAGER": "cat",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_LITERAL_PATHSPECS": "1",
        "LC_ALL": "C",
    }
