"""Checking a series out: the pristine tree and one commit per patch, always the same ids for the same series."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchforge.branch.git import Repository
from patchforge.branch.message import message_of
from patchforge.diff.names import quote
from patchforge.engine.model import FileState, Plan
from patchforge.errors import InputError, TreeError
from patchforge.series.project import Series
from patchforge.tree.record import to_record
from patchforge.tree.root import Root
from patchforge.tree.target import Target

BRANCH = "series"
MARK = "patchforge.json"
SCHEMA = 1
_WHO = "patchforge <patchforge@invalid>"
_EPOCH = 1_000_000_000
_BINARY = (".so", ".pyc", ".pyd", ".cubin", ".a", ".o", ".bin", ".whl", ".zip", ".gz", ".png", ".ico", ".orig", ".rej")
_CONFIG = {
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "commit.cleanup": "scissors",
    "commit.gpgSign": "false",
    "rebase.autoSquash": "true",
}
_ATTRIBUTES = "* -text -ident -filter -working-tree-encoding -eol\n*.py diff=python\n*.pyi diff=python\n"


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """What was made: the directory, the ids of the pristine commit and of the tip, and how many files and patches."""

    directory: Path
    base: str
    tip: str
    files: int
    patches: int


def check_out(
    series: Series,
    plan: Plan,
    target: Target,
    texts: list[bytes],
    directory: Path,
    progress: Callable[[str, int, int], None],
) -> CheckedOut:
    """Make ``directory``, which must not exist or be empty, a repository of ``series`` as ``plan`` placed it on ``target``.

    ``texts`` are the texts before the diffs.  The directory appears whole or not at all.  Raises :class:`InputError` or
    :class:`TreeError`.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory} exists and is not empty", reason="exists", hint="name a new directory")
    directory.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        repository = Repository(work)
        _initialise(repository)
        with tempfile.TemporaryFile() as stream:
            files = _write_stream(stream, series, plan, target, texts, progress)
            stream.seek(0)
            progress("importing", 0, 0)
            # Every file is there once: looking for one it could be a delta of takes as long as all the rest.
            options = ("--quiet", "--date-format=raw", "--depth=0")
            repository.run("-c", "core.compression=1", "fast-import", *options, stdin=stream)
        base = repository.text("rev-parse", "refs/tags/pristine^{commit}")
        tip = repository.text("rev-parse", f"refs/heads/{BRANCH}")
        mark = {
            "schema": SCHEMA,
            "base": base,
            "tip": tip,
            "pin": series.pin.id if series.pin else None,
            "series": series.sha256,
            "strip": [p.strip for p in series.patches],
        }
        write_mark(repository, mark)
        progress("writing files", 0, 0)
        repository.run("reset", "--quiet", "--hard", BRANCH)
        repository.close()
        if directory.exists():
            directory.rmdir()
        work.chmod(0o755)
        work.rename(directory)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return CheckedOut(directory, base, tip, files, len(series.patches))


def write_mark(repository: Repository, mark: dict[str, object]) -> None:
    """Note what the repository holds, and keep the commits the note names from being collected."""
    repository.run("update-ref", "refs/patchforge/tip", str(mark["tip"]))
    path = repository.dot_git / MARK
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(mark, indent=1) + "\n")
    temporary.replace(path)


def _initialise(repository: Repository) -> None:
    repository.run("init", "--quiet", "--initial-branch", BRANCH, str(repository.directory))
    for key, value in _CONFIG.items():
        repository.run("config", key, value)
    attributes = repository.dot_git / "info/attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text(_ATTRIBUTES)


def _write_stream(
    stream: IO[bytes],
    series: Series,
    plan: Plan,
    target: Target,
    texts: list[bytes],
    progress: Callable[[str, int, int], None],
) -> int:
    """Write the fast-import stream; return the number of files of the pristine commit."""
    name = f"{series.pin.distribution} {series.pin.version}" if series.pin else "the tree"
    _commit_head(stream, 1, f"pristine {name}\n".encode(), None)
    paths = _paths(target)
    for number, path in enumerate(paths):
        if number % 200 == 0:
            progress("reading the tree", number, len(paths))
        if path in plan.before:
            state = plan.before[path]
            if state is not None:
                _file(stream, path, state.data, state.executable)
            continue
        found = target.pristine(path)  # not what is on disk: a series that is applied may touch more than this one
        if found is not None:
            _file(stream, path, found.data, found.executable)
        target.forget(path)
    _tag(stream)
    for number, (file, result, text) in enumerate(zip(series.patches, plan.results, texts, strict=True), 2):
        _commit_head(stream, number, message_of(file.name, text, series.pin is not None), number - 1)
        final: dict[str, FileState | None] = {}
        for step in result.steps:
            if step.moved and step.source is not None:
                final.setdefault(step.source, None)
            final[step.path] = step.after
        for path, state in sorted(final.items(), key=lambda item: (item[1] is not None, item[0])):
            if state is None:
                stream.write(b"D " + quote(path.encode()) + b"\n")
            else:
                _file(stream, path, state.data, state.executable)
        stream.write(b"\n")
    return len(paths)


def _commit_head(stream: IO[bytes], mark: int, message: bytes, parent: int | None) -> None:
    stamp = f"{_WHO} {_EPOCH + mark} +0000"
    stream.write(f"commit refs/heads/{BRANCH}\nmark :{mark}\nauthor {stamp}\ncommitter {stamp}\n".encode())
    stream.write(b"data %d\n" % len(message) + message + b"\n")
    if parent is not None:
        stream.write(b"from :%d\n" % parent)


def _tag(stream: IO[bytes]) -> None:
    stream.write(b"\nreset refs/tags/pristine\nfrom :1\n\n")


def _file(stream: IO[bytes], path: str, data: bytes, executable: bool) -> None:
    mode = b"100755" if executable else b"100644"
    stream.write(b"M " + mode + b" inline " + quote(path.encode()) + b"\ndata %d\n" % len(data) + data + b"\n")


def _paths(target: Target) -> list[str]:
    """The text files of the tree, each proved by RECORD where there is one."""
    paths = _recorded(target) if target.info is not None else _walked(target.root, target.prefix)
    return sorted(path for path in paths if not path.endswith(_BINARY))


def _recorded(target: Target) -> Iterable[str]:
    lead = f"{target.prefix}/" if target.prefix else ""
    wrong = []
    for full, row in target.pristine_record().rows().items():
        if not full.startswith(lead) or "/__pycache__/" in full or full.endswith(_BINARY):
            continue
        path = full[len(lead) :]
        found = target.pristine(path)
        if found is None or (row.hash and to_record(found.sha256) != row.hash):
            wrong.append(path)
        if found is not None and b"\0" not in found.data[:8000]:
            yield path
    if wrong:
        raise TreeError(
            f"{len(wrong)} files are not as they were installed: {', '.join(wrong[:5])}",
            reason="foreign",
            file=wrong[0],
            hint="check out from a pristine tree, for instance with --fetch",
        )


def _walked(root: Root, prefix: str) -> Iterable[str]:
    base = root.base / prefix
    for path in base.rglob("*"):
        relative = path.relative_to(base)
        if path.is_symlink() or not path.is_file() or relative.parts[0] in (".git", ".pc"):
            continue
        if b"\0" not in path.read_bytes()[:8000]:
            yield relative.as_posix()
