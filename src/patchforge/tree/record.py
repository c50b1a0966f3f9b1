"""RECORD of an installed distribution: which bytes were installed, as the wheel specification writes it.

The file is kept byte for byte except for the rows that must change, so that the pristine one can be restored exactly.
"""

from __future__ import annotations

import base64
import csv
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from patchforge.errors import TreeError

_DIGITS = 20
Edit = tuple[int, int, list[bytes]]
"""``(index, pieces to replace, pieces to put)`` on the pieces between newlines."""


def record_hash(data: bytes) -> str:
    """``sha256=`` and the URL-safe base64 digest without padding."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def to_record(sha256: str) -> str:
    """The RECORD form of a hexadecimal SHA-256."""
    return "sha256=" + base64.urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class Row:
    """One row: path, hash (``sha256=…`` or empty), size (or ``None``), and its index among the lines."""

    path: str
    hash: str
    size: int | None
    index: int


class Record:
    """The rows of a RECORD, found without parsing more than asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = data.split(b"\n")

    def rows(self) -> dict[str, Row]:
        """Every row by path."""
        found = {}
        for index, line in enumerate(self.lines):
            row = _row(line, index)
            if row is not None:
                found[row.path] = row
        return found

    def find(self, paths: set[str]) -> dict[str, Row]:
        """The rows of ``paths`` only.  Raises :class:`TreeError` when one is listed twice: which of them is true?"""
        wanted = {path.encode() for path in paths}
        found: dict[str, Row] = {}
        for index, line in enumerate(self.lines):
            if line[:1] == b'"' or line.partition(b",")[0] in wanted:
                row = _row(line, index)
                if row is None or row.path not in paths:
                    continue
                if row.path in found:
                    raise TreeError(
                        f"RECORD lists {row.path} twice (lines {found[row.path].index + 1} and {index + 1})",
                        reason="record",
                        hint="reinstall the distribution",
                    )
                found[row.path] = row
        return found

    def rewritten(self, changes: Mapping[str, bytes | None]) -> tuple[bytes, list[Edit]]:
        """RECORD with the rows of ``changes`` re-hashed, added, or (``None``) dropped.

        Returns the new bytes and the edits that undo it, in the order in which to apply them.
        """
        rows = self.find(set(changes))
        pieces = list(self.lines)
        undo: list[Edit] = []
        for path, row in sorted(rows.items(), key=lambda item: -item[1].index):
            data, old = changes[path], self.lines[row.index]
            put = [] if data is None else [_line(path, data) + (b"\r" if old.endswith(b"\r") else b"")]
            undo.append((row.index, len(put), [old]))
            pieces[row.index : row.index + 1] = put
        if not pieces:
            pieces = [b""]
            undo.append((0, 1, []))
        end = b"\r" if len(self.lines) > 1 and self.lines[0].endswith(b"\r") else b""
        added = [_line(path, data) for path, data in sorted(changes.items()) if data is not None and path not in rows]
        if added and pieces[-1] == b"":
            at, put = len(pieces) - 1, [line + end for line in added]
            undo.append((at, len(put), []))
            pieces[at:at] = put
        elif added:
            # The last row has no end of line: the new ones go on from there, and the last of them has none either.
            last = pieces[-1]
            put = [last + (b"" if last.endswith(b"\r") else end), *(line + end for line in added[:-1]), added[-1]]
            undo.append((len(pieces) - 1, len(put), [last]))
            pieces[-1:] = put
        undo.reverse()
        return b"\n".join(pieces), undo


def undo_edits(data: bytes, edits: list[Edit]) -> bytes:
    """Apply ``edits`` in order to the pieces of ``data``."""
    pieces = data.split(b"\n")
    for index, count, put in edits:
        pieces[index : index + count] = put
    return b"\n".join(pieces)


def _line(path: str, data: bytes) -> bytes:
    name = path if not any(c in path for c in ',"\n\r') else '"' + path.replace('"', '""') + '"'
    return f"{name},{record_hash(data)},{len(data)}".encode()


def _row(line: bytes, index: int) -> Row | None:
    text = line.decode("utf-8", "surrogateescape").rstrip("\r")
    if not text:
        return None
    try:
        fields = next(csv.reader([text])) if text[0] == '"' else text.rsplit(",", 2)
    except csv.Error:
        return None
    if len(fields) != 3:
        return None
    path, digest, size = fields
    plain = size.isascii() and size.isdigit() and len(size) < _DIGITS
    return Row(path, digest, int(size) if plain else None, index)
