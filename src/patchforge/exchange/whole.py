"""Adopting a whole series kept elsewhere: a quilt directory, or a folder of patches, with looser headers or none."""

from __future__ import annotations

import re
from pathlib import Path

from patchforge.diff import parse_patch
from patchforge.errors import InputError
from patchforge.exchange.sections import cut, renamed
from patchforge.exchange.take import Taken, complete
from patchforge.series.pin import Pin
from patchforge.series.quilt import SeriesLine, read_series

_KEYS = ("Kind", "What", "Upstream", "Cut-against", "Retires-when")
_OPTIONAL = ("Supersedes", "Requires", "Probe", "Env", "Tests")
_LINE = re.compile(r"([A-Za-z][A-Za-z-]*):[ \t]*(.*)\Z")


def take_series(directory: Path, pin: Pin) -> list[Taken]:
    """Every patch of ``directory`` in its order, paths made relative to the package; no header is guessed."""
    lines = _order(directory)
    read = [(line, _read(directory, line)) for line in lines]
    inside = any(
        (path or "").startswith(f"{pin.root}/")
        for line, data in read
        for change in parse_patch(data, line.name, 1 if line.strip is None else line.strip).files
        for path in (change.old_path, change.new_path)
    )
    return [_one(line, data, pin, f"{pin.root}/" if inside else "") for line, data in read]


def _order(directory: Path) -> tuple[SeriesLine, ...]:
    if (directory / "series").is_file():
        return read_series(directory / "series", str(directory / "series"))
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory", reason="usage")
    found = sorted(p.name for p in directory.iterdir() if p.suffix in (".patch", ".diff"))
    if not found:
        raise InputError("it has neither a series file nor patches", reason="series", file=str(directory))
    return tuple(SeriesLine(name, None, number) for number, name in enumerate(found, 1))


def _read(directory: Path, line: SeriesLine) -> bytes:
    try:
        return (directory / line.name).read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read {line.name}: {error.strerror}",
            reason="series",
            file=str(directory / "series"),
            line=line.line,
        ) from error


def _one(line: SeriesLine, data: bytes, pin: Pin, lead: str) -> Taken:
    before, sections = cut(data)
    strip = 1 if line.strip is None else line.strip
    parts, left_out = [], []
    for section in sections:
        (change,) = parse_patch(section, line.name, strip).files
        if lead and not any((path or "").startswith(lead) for path in (change.old_path, change.new_path)):
            left_out.append(change.path)
            continue
        old, new = (p.removeprefix(lead) if p is not None else None for p in (change.old_path, change.new_path))
        parts.append(renamed(section, change, old, new).rstrip(b"\n") + b"\n")
    if not parts:
        raise InputError(f"nothing of it is in {pin.root}/", reason="path", file=line.name)
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", re.sub(r"\.(patch|diff)$", "", line.name)).strip("-.")
    text = before.decode("utf-8", "replace")
    if complete(text):
        return Taken(name, text.rstrip("\n").encode() + b"\n\n" + b"".join(parts), tuple(left_out), ())
    head, missing = _headers(text)
    return Taken(name, head.encode() + b"".join(parts), tuple(left_out), missing)


def _headers(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with a header paragraph of what it says of itself; the keys it does not say are left empty."""
    known = {key.casefold(): key for key in (*_KEYS, *_OPTIONAL)}
    found: dict[str, str] = {}
    prose = []
    for line in text.split("\n"):
        match = _LINE.match(line)
        key = known.get(match[1].casefold()) if match is not None else None
        if match is not None and key is not None and key not in found and match[2].strip():
            found[key] = match[2].strip()
        else:
            prose.append(line)
    missing = tuple(key for key in _KEYS if key not in found)
    body = "\n".join(prose).strip()
    lines = [f"{key}: {found.get(key, '')}".rstrip() for key in _KEYS]
    lines += [f"{key}: {found[key]}" for key in _OPTIONAL if key in found]
    return (f"{body}\n\n" if body else "") + "\n".join(lines) + "\n\n", missing
