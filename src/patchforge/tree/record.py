"""RECORD of an installed distribution: which bytes were installed, as the wheel specification writes it.

The file is kept byte for byte except for the rows that must change, so that the pristine one can be restored exactly.
"""

from __future__ import annotations

import base64
import csv
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

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
        """The rows of ``paths`` only."""
        wanted = {path.encode() for path in paths}
        found = {}
        for index, line in enumerate(self.lines):
            if line[:1] == b'"' or line.partition(b",")[0] in wanted:
                row = _row(line, index)
                if row is not None and row.path in paths:
                    found[row.path] = row
        return found

    def rewritten(self, changes: Mapping[str, bytes | None]) -> tuple[bytes, list[Edit]]:
        """RECORD with the rows of ``changes`` re-hashed, added, or (``None``) dropped.

        Returns the new bytes and the edits that undo it, in the order in which to apply them.
        """
        rows = self.find(set(changes))
        end = b"\r" if len(self.lines) > 1 and self.lines[0].endswith(b"\r") else b""
        pieces = list(self.lines)
        undo: list[Edit] = []
        for path, row in sorted(rows.items(), key=lambda item: -item[1].index):
            data = changes[path]
            put = [] if data is None else [_line(path, data) + end]
            undo.append((row.index, len(put), [self.lines[row.index]]))
            pieces[row.index : row.index + 1] = put
        added = [
            _line(path, data) + end for path, data in sorted(changes.items()) if data is not None and path not in rows
        ]
        if added:
            if pieces[-1] == b"":
                at, put = len(pieces) - 1, added
            else:
                at, put = len(pieces), added
            undo.append((at, len(put), []))
            pieces[at:at] = put
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
    fields = next(csv.reader([text])) if text[0] == '"' else text.rsplit(",", 2)
    if len(fields) != 3:
        return None
    path, digest, size = fields
    return Row(path, digest, int(size) if size.isdigit() else None, index)
