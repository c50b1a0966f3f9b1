"""Bytecode in an image: whose it is, and whether an interpreter would run it in place of the source that is there."""

from __future__ import annotations

import _imp

_HEADER = 16
_CHECKED_HASH = 3


def bytecode_of(path: str) -> str | None:
    """The source whose bytecode ``path`` is: in ``__pycache__``, or beside it as without a source; ``None`` for other files."""
    if not path.endswith(".pyc"):
        return None
    folder, _, name = path.rpartition("/")
    above = folder.removesuffix("/__pycache__")
    stem = name.partition(".")[0] if above != folder else name[:-4]
    return f"{above}/{stem}.py"


def why_stale(name: str, data: bytes | None, source: bytes | None) -> str:
    """Why bytecode may not stay beside ``source`` (``None``: the module is gone); empty when it may.

    It may if it is checked against the source's own content at every import: a time and a size prove nothing in an image,
    where every file has the same time.
    """
    if source is None:
        return "" if "/__pycache__/" in name else "would be imported, and the module it is of is gone"
    if data is None or len(data) < _HEADER:
        return "is no bytecode"
    if int.from_bytes(data[4:8], "little") != _CHECKED_HASH:
        return "is not checked against its source when it is imported"
    # The hash is keyed with the interpreter's own magic number, which need not be this one's.
    if data[8:_HEADER] != _imp.source_hash(int.from_bytes(data[:4], "little"), source):
        return "is not of the source beside it"
    return ""
