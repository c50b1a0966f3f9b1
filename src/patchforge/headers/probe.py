"""``Probe:``, structured."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SOURCE = re.compile(r"source: (\S+) :: ([A-Za-z_][A-Za-z0-9_.]*)(?: contains (.+))?\Z")
_IMPORT = re.compile(r"import: ([A-Za-z_][A-Za-z0-9_.]*):([A-Za-z_][A-Za-z0-9_.]*)\Z")


@dataclass(frozen=True, slots=True)
class Probe:
    """``kind`` is ``source`` (``where`` a path of the tree, ``name`` a qualified name, ``text`` what its source holds) or
    ``import`` (``where`` a module, ``name`` an attribute path)."""

    kind: str
    where: str
    name: str
    text: str = ""


def parse_probe(value: str) -> Probe:
    """Parse a ``Probe`` value.  Raises :class:`ValueError`."""
    match = _SOURCE.match(value)
    if match is not None:
        return Probe("source", match[1], match[2], match[3] or "")
    match = _IMPORT.match(value)
    if match is not None:
        return Probe("import", match[1], match[2])
    raise ValueError(f"{value!r} is not 'source: PATH :: QUALNAME [contains TEXT]' or 'import: MODULE:ATTRIBUTE'")
