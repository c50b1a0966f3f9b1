"""The ``series`` file: quilt's format, read strictly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import InputError
from patchforge.series.files import read_file

_OPTION = re.compile(r"-p ?(\d{1,2}|ab)\Z")


@dataclass(frozen=True, slots=True)
class SeriesLine:
    """One patch of a series file: its name as written, its strip level (``None``: the default), its line."""

    name: str
    strip: int | None
    line: int


def parse_series(text: str, file: str) -> tuple[SeriesLine, ...]:
    """Parse the text of a series file; ``file`` labels errors.

    One patch per line, ``#`` comments at the start of a line or after white space, ``-pN`` after the name.  Raises
    :class:`InputError` for a name that leaves the directory, an unknown option, or a name given twice.
    """
    found: list[SeriesLine] = []
    seen: dict[str, int] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        words = re.sub(r"(^|\s)#.*", "", raw.rstrip("\r")).split()
        if not words:
            continue
        name, options = words[0], words[1:]
        parts = name.split("/")
        if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
            what = "leaves the patch directory" if "\0" not in name else "is no name: it has a NUL byte"
            raise InputError(f"{name!r} {what}", reason="path", file=file, line=number)
        if name in seen:
            raise InputError(
                f"{name} is listed twice (first: line {seen[name]})", reason="series", file=file, line=number
            )
        seen[name] = number
        strip: int | None = None
        match = _OPTION.match(" ".join(options)) if options else None
        if match:
            strip = 1 if match.group(1) == "ab" else int(match.group(1))
        elif options:
            raise InputError(
                f"unknown option {' '.join(options)!r} after {name}",
                reason="series",
                file=file,
                line=number,
                hint="only -pN may follow a name (a reversed patch, -R, is not applied: turn it round)",
            )
        found.append(SeriesLine(name, strip, number))
    return tuple(found)


def read_series(path: Path, label: str) -> tuple[SeriesLine, ...]:
    """Read and parse the series file ``path``; a missing one is an :class:`InputError`."""
    raw = read_file(path, label, "series")
    if raw is None:
        raise InputError("there is no series file", reason="series", file=label)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("the series file is not UTF-8", reason="series", file=label) from error
    return parse_series(text, label)
