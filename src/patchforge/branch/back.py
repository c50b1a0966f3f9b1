"""Reading a branch back: every commit after the pristine one is a patch."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from patchforge.branch.canonical import canonical_diff
from patchforge.branch.git import Commit, Repository
from patchforge.branch.message import Message, cleaned, file_text, message_of, parse_message, slug
from patchforge.branch.out import MARK, SCHEMA
from patchforge.engine.model import Entry, FileState
from patchforge.engine.place import Options
from patchforge.engine.plan import plan_series
from patchforge.errors import InputError, ManyProblems, Problem, Refused
from patchforge.headers import parse_header
from patchforge.series.names import free_name, is_name
from patchforge.series.parsed import Schema, parse_file
from patchforge.series.project import PatchFile, Series

_BUSY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or 'git am'",
    "BISECT_LOG": "a bisection",
}
_REWORD = "git rebase -i pristine, 'reword'"


@dataclass(frozen=True, slots=True)
class ReadPatch:
    """One patch as the branch has it.  ``result``: ``kept``, ``changed``, ``new`` or ``renamed``; ``was`` its old name."""

    name: str
    data: bytes
    result: str
    was: str | None = None
    commit: str = ""


@dataclass(frozen=True, slots=True)
class ReadBranch:
    """The whole branch: the patches in order, the names that are gone, and the pristine commit."""

    patches: tuple[ReadPatch, ...]
    dropped: tuple[str, ...]
    base: str


def read_mark(repository: Repository) -> dict[str, object]:
    """What checkout noted.  Raises :class:`InputError`."""
    try:
        mark = json.loads((repository.dot_git / MARK).read_bytes())
    except (OSError, ValueError):
        mark = {}
    if not isinstance(mark, dict) or mark.get("schema") != SCHEMA:
        raise InputError(
            f"{repository.directory} was not made by 'patchforge checkout'",
            reason="usage",
            hint="check the series out to a new directory",
        )
    return mark


def settled(repository: Repository) -> None:
    """Refuse a repository in which something is not finished.  Raises :class:`Refused`."""
    for name, what in _BUSY.items():
        if (repository.dot_git / name).exists():
            raise Refused(
                f"{what} is in progress in {repository.directory}", reason="unfinished", hint="finish or abort it first"
            )
    dirty = repository.text("status", "--porcelain", "--untracked-files=all")
    if dirty:
        lines = dirty.split("\n")
        raise Refused(
            f"{repository.directory} has work that is not committed: {', '.join(line[3:] for line in lines[:5])}"
            + (f" and {len(lines) - 5} more" if len(lines) > 5 else ""),
            reason="uncommitted",
            hint="commit it (git commit --amend, or --fixup and git rebase -i), or stash it",
        )


def read_branch(repository: Repository, series: Series, schema: Schema | None) -> ReadBranch:
    """Turn the commits into patches; a commit that says and does what the patch file says and does keeps its bytes."""
    mark = read_mark(repository)
    settled(repository)
    base = str(mark["base"])
    head = repository.text("rev-parse", "HEAD")
    if not repository.descends(head, base):
        raise Refused(
            "HEAD does not descend from the pristine commit",
            reason="history",
            hint="rebase your commits onto the tag 'pristine'",
        )
    if series.sha256 != mark["series"]:
        raise Refused(
            f"the patches of the project are not those that were checked out: {_since(repository, series, mark)}",
            reason="stale",
            hint="check them out to a new directory and bring your commits there (git fetch, git cherry-pick)",
        )
    if head == mark["tip"]:  # the very commits that were made from these patches
        kept = tuple(ReadPatch(p.name, p.data, "kept") for p in series.patches)
        return ReadBranch(kept, (), base)
    commits = repository.commits(base, head)
    _linear(commits, base)
    origin = _origin(repository, base, str(mark["tip"]))
    by_name = {p.name: p for p in series.patches}
    by_message: dict[bytes, PatchFile] = {}
    for known in series.patches:
        by_message[cleaned(parse_message(message_of(known.name, _text(known), schema is not None)).text)] = known
    patches: list[ReadPatch] = []
    taken: set[str] = set()
    problems: list[Problem] = []
    parent = base
    messages = [parse_message(commit.message) for commit in commits]
    used = {message.name for message in messages}
    for commit, message in zip(commits, messages, strict=True):
        name = message.name or slug(message.subject)
        if series.pin is not None:
            name = name.removesuffix(".patch")
        if name in taken:
            name = _free(slug(message.subject) if message.name else name, taken | set(by_name))
        if not _good_name(name, series.pin is not None):
            raise InputError(
                f"commit {commit.id[:10]}: {name!r} cannot be a patch's name",
                reason="path",
                hint=f"mend the trailer Patch-Name: {_REWORD}",
            )
        taken.add(name)
        file = by_name.get(name)
        if message.others and not (file is not None and _same_text(file, message, schema is not None)):
            problems.append(_squashed(commit, message))
            continue
        problems += _check(commit, message, name, schema)
        settled_at = origin.get(file.name) if file is not None else None
        if file is not None and _same(repository, parent, commit, message, file, schema is not None, settled_at):
            patches.append(ReadPatch(name, file.data, "kept", commit=commit.id))
        else:
            keeps = file is not None and _same_text(file, message, schema is not None)
            text = _text(file) if file is not None and keeps else file_text(message.text)
            if series.pin is not None:
                release = f"{series.pin.distribution} {series.pin.version}".encode()
                text = re.sub(rb"(?m)^Cut-against:.*$", b"Cut-against: " + release, text)
            data = text + canonical_diff(repository, parent, commit)
            old = by_message.get(cleaned(message.text)) if file is None else None
            if old is not None and old.name in used:
                old = None  # a part split off: the patch itself is still there
            result = "changed" if file is not None else "renamed" if old is not None else "new"
            if old is not None:
                at = origin.get(old.name)
                if _same(repository, parent, commit, message, old, schema is not None, at):
                    data = old.data
            patches.append(ReadPatch(name, data, result, old.name if old else None, commit.id))
        parent = commit.id
    for patch in patches:
        if patch.name not in by_name:
            free_name(patch.name, taken, f"commit {patch.commit[:10]}: mend its trailer Patch-Name: {_REWORD}")
    if problems:
        raise ManyProblems(f"{len(problems)} problems in the commit messages", problems, reason="header")
    gone = tuple(p.name for p in series.patches if p.name not in taken and p.name not in {r.was for r in patches})
    return ReadBranch(tuple(patches), gone, base)


def _since(repository: Repository, series: Series, mark: dict[str, object]) -> str:
    """What became of the patches since they were checked out."""
    commits = repository.commits(str(mark["base"]), str(mark["tip"]))
    then = {parse_message(commit.message).name: commit for commit in commits}
    now = {file.name: file for file in series.patches}
    changed = []
    for name, file in now.items():
        commit = then.get(name)
        if commit is not None:
            message = parse_message(commit.message)
            if not _same(repository, commit.parents[0], commit, message, file, series.pin is not None, None):
                changed.append(name)
    found = {
        "changed": changed,
        "new": [name for name in now if name not in then],
        "gone": [name for name in then if name is not None and name not in now],
    }
    said = [f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {word}" for word, names in found.items() if names]
    return "; ".join(said) or "their order, or how they are written, changed"


def _good_name(name: str, in_project: bool) -> bool:
    """A name that stays in the patch directory."""
    return all(is_name(part) for part in ([name] if in_project else name.split("/")))


def _linear(commits: list[Commit], base: str) -> None:
    before = base
    for commit in commits:
        if commit.parents != (before,):
            raise Refused(
                f"commit {commit.id[:10]} is a merge: a series is one line of commits",
                reason="history",
                hint="flatten it: git rebase pristine",
            )
        subject = parse_message(commit.message).subject
        if subject.startswith(("fixup! ", "squash! ", "amend! ")):
            raise Refused(
                f"commit {commit.id[:10]} ({subject}) is still to be folded in",
                reason="unfinished",
                hint="git rebase -i pristine",
            )
        before = commit.id


def _text(file: PatchFile) -> bytes:
    return parse_file(file).text


def _same_text(file: PatchFile, message: Message, series_patch: bool) -> bool:
    """True when the commit says what the patch file says, but for what git strips when it rewrites a message."""
    own = parse_message(message_of(file.name, _text(file), series_patch)).text
    return own == message.text or cleaned(own) == cleaned(message.text)


def _check(commit: Commit, message: Message, name: str, schema: Schema | None) -> list[Problem]:
    """The problems of a commit's headers, at the commit."""
    if schema is None:
        return []
    where = f"commit {commit.id[:10]} ({message.subject})"
    try:
        header = parse_header(message.text, where)
    except InputError as error:
        hint = f"end the message with the headers (Kind:, What:, …) of patch '{name}': {_REWORD}"
        return [Problem(error.message, where, None, hint, "header", patch=name)]
    return [
        Problem(p.message, where, None, p.hint, p.reason, patch=name) for p in schema.checker.check(header, where, None)
    ]


def _squashed(commit: Commit, message: Message) -> Problem:
    """The commit has the messages of several patches."""
    named = " and ".join(f"'{name}'" for name in (*message.others, message.name))
    return Problem(
        f"its message has the headers of several patches, {named}, as a squash leaves it",
        f"commit {commit.id[:10]} ({message.subject})",
        None,
        f"keep the text and the headers of one: {_REWORD} (or squash with 'fixup', which keeps the first's)",
        "header",
        patch=message.name,
    )


def _free(name: str, taken: set[str]) -> str:
    number = 2
    while name in taken and f"{name}-{number}" in taken:
        number += 1
    return name if name not in taken else f"{name}-{number}"


def _origin(repository: Repository, base: str, tip: str) -> dict[str, str]:
    """The commit each patch stood on when it was checked out, or last written back."""
    parents = {}
    for commit in repository.commits(base, tip):
        name = parse_message(commit.message).name
        if name is not None and commit.parents:
            parents[name] = commit.parents[0]
    return parents


def _same(
    repository: Repository,
    parent: str,
    commit: Commit,
    message: Message,
    file: PatchFile,
    series_patch: bool,
    origin: str | None,
) -> bool:
    """True when ``file`` has the commit's text, and lands on its parent to give its tree.

    It must land exactly, unless its files are those it stood on before (at ``origin``): then it keeps the offsets it had.
    """
    try:
        patch = parse_file(file)
    except InputError:
        return False
    if not _same_text(file, message, series_patch):
        return False
    entries = {entry.path: entry for entry in repository.changed(parent, commit.id)}

    def read(path: str) -> FileState | None:
        data = repository.blob(parent, path)
        entry = entries.get(path)
        executable = entry is not None and entry.old_mode == "100755"
        if entry is None and data is not None:
            executable = repository.text("ls-tree", parent, "--", path).startswith("100755")
        return None if data is None else FileState.of(data, executable)

    moved = {e.path for e in repository.changed(origin, parent)} if origin not in (None, parent) and origin else set()
    touched = {path for change in patch.files for path in (change.old_path, change.new_path)}
    exact = origin is None or bool(moved & touched)
    plan = plan_series([Entry(patch)], read, Options(exact=exact, prove_scope=False))
    if plan.failure is not None or set(plan.changed) != set(entries):
        return False
    for path, entry in entries.items():
        state = plan.after[path]
        if state is None:
            if entry.new_mode != "000000":
                return False
            continue
        mode = "100755" if state.executable else "100644"
        data = state.data
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        if (mode, blob) != (entry.new_mode, entry.new_id):
            return False
    return True


def patch_path(series: Series, name: str) -> Path:
    """Where the patch ``name`` lies."""
    return series.directory / (name if series.pin is None else f"{name}.patch")
