"""The journal of a change: what it holds, and whether one found in a tree may be believed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from patchforge.diff.names import BadName, safe_path

PREPARE = ".patchforge-prepare"
COMMIT = ".patchforge-commit"
SUFFIX = ".patchforge-tmp"
STATE = "patchforge/state.json"
SCHEMA = 1
MAX_JOURNAL = 64 * 1024 * 1024
_MAX_NAME = 255


@dataclass(frozen=True, slots=True)
class Op:
    """One file: its SHA-256 before and after; ``None`` where it does not exist."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Journal:
    """A change: its files, the bytecode it removes, the directories it makes, and a word on ``what`` it is."""

    what: str
    ops: tuple[Op, ...]
    remove: tuple[str, ...]
    made: tuple[str, ...]

    def dump(self) -> bytes:
        """The bytes of the journal."""
        ops = [{"path": op.path, "before": op.before, "after": op.after} for op in self.ops]
        document = {"schema": SCHEMA, "what": self.what, "ops": ops, "remove": self.remove, "made": self.made}
        return json.dumps(document).encode()


def temp_name(path: str) -> str:
    """Where the new bytes of ``path`` wait; always a name that the file system can hold."""
    folder, slash, name = path.rpartition("/")
    if len(name.encode()) + len(SUFFIX) + 1 > _MAX_NAME:
        name = hashlib.sha256(name.encode()).hexdigest()
    return f"{folder}{slash}.{name}{SUFFIX}"


def parse_journal(data: bytes, prefix: str, home: str) -> Journal:
    """Read a journal; raises :class:`ValueError` for one that no run on this tree could have written.

    It lies in the tree, and the tree may be anybody's: it may name files of the tree below ``prefix`` that a patch may name,
    their bytecode, and RECORD and the state below ``home``.
    """
    try:
        raw = json.loads(data)
        if raw["schema"] != SCHEMA:
            raise ValueError("it was written by another version of patchforge")
        ops = tuple(Op(op["path"], op["before"], op["after"]) for op in raw["ops"])
        journal = Journal(raw["what"], ops, _strings(raw["remove"]), _strings(raw["made"]))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    check(journal, prefix, home)
    return journal


def check(journal: Journal, prefix: str, home: str) -> None:
    """Raise :class:`ValueError` unless every path of ``journal`` is one that a change of this tree may touch."""
    if not isinstance(journal.what, str) or not journal.what.isprintable():
        raise ValueError("it does not say what it is")
    own = {f"{home}/RECORD", f"{home}/{STATE}"} if home else set()
    for op in journal.ops:
        for value in (op.before, op.after):
            if value is not None and not isinstance(value, str):
                raise ValueError("a hash is not a string")
        if op.path not in own:
            _below(op.path, prefix)
    for path in journal.remove:
        _bytecode(path, prefix)
    for path in journal.made:
        if home and path == f"{home}/patchforge":
            continue
        if not f"{prefix}/".startswith(f"{path}/") or not path:
            _below(f"{path}/file", prefix)
    if len({op.path for op in journal.ops}) != len(journal.ops):
        raise ValueError("it names a file twice")


def _strings(raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
        raise TypeError("not a list of strings")
    return tuple(raw)


def _below(path: Any, prefix: str) -> None:
    if not isinstance(path, str) or (prefix and not path.startswith(f"{prefix}/")):
        raise ValueError(f"{path!r} is outside the tree")
    try:
        safe_path((path[len(prefix) + 1 :] if prefix else path).encode())
    except BadName as error:
        raise ValueError(f"{path!r}: {error}") from error


def _bytecode(path: str, prefix: str) -> None:
    folder, _, name = path.rpartition("/")
    if not name.endswith(".pyc"):
        raise ValueError(f"{path!r} is not bytecode")
    if folder == "__pycache__" or folder.endswith("/__pycache__"):
        folder = folder[: -len("__pycache__")].rstrip("/")
    _below(f"{folder}/{name}.py".lstrip("/"), prefix)
