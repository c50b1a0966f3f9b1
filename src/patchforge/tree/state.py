"""The state file in dist-info: what patchforge did to this distribution, and how to undo it.

It names the series and, per patch and per file, the hashes before and after; and for every touched file the edits that
turn the patched bytes back into the pristine ones, so that ``revert`` needs neither the series nor the wheel.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from patchforge.diff.names import safe_path
from patchforge.errors import TreeError
from patchforge.tree.journal import STATE
from patchforge.tree.record import Edit, undo_edits
from patchforge.tree.root import MAX_FILE, Root

NAME = STATE
SCHEMA = 1
_BITS = 0o7777


@dataclass(frozen=True, slots=True)
class Undo:
    """How to get a file's pristine bytes back: ``edits`` on the patched bytes, or the whole ``content``."""

    edits: tuple[Edit, ...] = ()
    content: bytes | None = None

    def apply(self, data: bytes | None) -> bytes:
        """The pristine bytes, given the patched ones."""
        if self.content is not None:
            return self.content
        if data is None:
            raise TreeError("the patched file is missing, so it cannot be undone", reason="state")
        return undo_edits(data, list(self.edits))


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file the series touched: hashes, ``None`` where it does not exist.

    ``mode`` holds the pristine permission bits where the series changes them or removes the file.
    """

    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    undo: Undo = field(default_factory=Undo)


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """One applied patch: its hash, and each file's hash after it."""

    name: str
    sha256: str
    files: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class State:
    """What is applied.  ``record`` undoes the changes to RECORD, whose pristine hash is ``record_before``."""

    tool: str
    distribution: str
    version: str
    series: str
    upto: str | None
    patches: tuple[AppliedPatch, ...]
    files: tuple[TouchedFile, ...]
    record: tuple[Edit, ...]
    record_before: str

    def file(self, path: str) -> TouchedFile | None:
        """The touched file at ``path``."""
        return next((f for f in self.files if f.path == path), None)


def _edits_out(edits: tuple[Edit, ...]) -> list[Any]:
    return [[index, count, [piece.decode("latin-1") for piece in put]] for index, count, put in edits]


def _edits_in(raw: list[Any]) -> tuple[Edit, ...]:
    return tuple((int(i), int(n), [str(piece).encode("latin-1") for piece in put]) for i, n, put in raw)


def dump_state(state: State) -> bytes:
    """The bytes of the state file: no time, no path of a machine, so that images stay reproducible."""
    files = []
    for f in state.files:
        item: dict[str, Any] = {"path": f.path, "before": f.before, "after": f.after}
        if f.mode is not None:
            item["mode"] = f"{f.mode:o}"
        if f.undo.content is not None:
            item["content"] = base64.b85encode(zlib.compress(f.undo.content, 9)).decode()
        elif f.undo.edits:
            item["edits"] = _edits_out(f.undo.edits)
        files.append(item)
    document = {
        "schema": SCHEMA,
        "tool": state.tool,
        "distribution": state.distribution,
        "version": state.version,
        "series": state.series,
        "upto": state.upto,
        "patches": [
            {"name": p.name, "sha256": p.sha256, "files": [[path, sha] for path, sha in p.files]} for p in state.patches
        ],
        "files": files,
        "record": _edits_out(state.record),
        "record_before": state.record_before,
    }
    return json.dumps(document, indent=0, separators=(",", ":")).encode() + b"\n"


def load_state(data: bytes) -> State:
    """Parse a state file.  Raises :class:`TreeError` when it is damaged, or names what no series could have touched.

    It lies in the tree, and the tree may be anybody's.
    """
    try:
        raw = json.loads(data)
        if raw["schema"] != SCHEMA:
            raise TreeError(
                f"the state was written by another version of patchforge ({str(raw.get('tool'))[:40]!r})",
                reason="state",
                hint="revert with that version, or reinstall the distribution",
            )
        return State(
            _text(raw["tool"]),
            _text(raw["distribution"]),
            _text(raw["version"]),
            _text(raw["series"]),
            None if raw["upto"] is None else _text(raw["upto"]),
            tuple(
                AppliedPatch(
                    _text(p["name"]),
                    _text(p["sha256"]),
                    tuple((_path(path), _hash(sha)) for path, sha in p["files"]),
                )
                for p in raw["patches"]
            ),
            tuple(_file(item) for item in raw["files"]),
            _edits_in(raw["record"]),
            _text(raw["record_before"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, zlib.error) as error:
        raise TreeError(
            f"the state file is damaged ({type(error).__name__}: {error})",
            reason="state",
            hint="reinstall the distribution, then apply again",
        ) from error


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise TypeError("not a printable string")
    return value


def _hash(value: object) -> str | None:
    return None if value is None else _text(value)


def _path(value: object) -> str:
    return safe_path(_text(value).encode())


def _file(item: dict[str, Any]) -> TouchedFile:
    content = None
    if "content" in item:
        unpacker = zlib.decompressobj()
        content = unpacker.decompress(base64.b85decode(item["content"]), MAX_FILE)
        if not unpacker.eof:
            raise ValueError("a content is cut off or too large")
    undo = Undo(_edits_in(item.get("edits", [])), content)
    mode = int(item["mode"], 8) if "mode" in item else None
    if mode is not None and not 0 <= mode <= _BITS:
        raise ValueError("a mode is out of range")
    return TouchedFile(_path(item["path"]), _hash(item["before"]), _hash(item["after"]), mode, undo)


def read_state(root: Root, info: str) -> State | None:
    """The state of the distribution whose dist-info is ``info``; ``None`` when nothing is applied."""
    found = root.read(f"{info}/{NAME}")
    try:
        return None if found is None else load_state(found.data)
    except TreeError as error:
        error.file = f"{info}/{NAME}"
        raise
