"""Adopting a whole series kept elsewhere: a quilt directory, or a folder of patches, with looser headers or none."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from patchforge.diff import parse_patch
from patchforge.errors import InputError
from patchforge.exchange.sections import cut, renamed
from patchforge.exchange.take import Taken, complete
from patchforge.series.files import read_file
from patchforge.series.names import MAX_NAME
from patchforge.series.pin import Pin
from patchforge.series.quilt import SeriesLine, read_series

_KEYS = ("Kind", "What", "Upstream", "Cut-against", "Retires-when")
_OPTIONAL = ("Supersedes", "Requires", "Probe", "Env", "Tests")
_LINE = re.compile(r"([A-Za-z][A-Za-z-]*):[ \t]*(.*)\Z")


@dataclass(frozen=True, slots=True)
class Whole:
    """A series taken in: its patches in order, and those that are ``left_out``, each a file name and the reason.

    ``comments``: by the index of a patch, what people wrote in the series file above it, as lines; ``beside``: behind its
    name; the index after the last patch has what stands below all of them.
    """

    taken: list[Taken]
    left_out: tuple[tuple[str, str], ...]
    comments: dict[int, list[str]]
    beside: dict[int, str]

    def line(self, number: int, name: str) -> str:
        """The lines of patch ``number`` in a series file, where it is called ``name``."""
        beside = self.beside.get(number, "")
        return "".join(self.comments.get(number, [])) + name + (f" {beside}" if beside else "") + "\n"


def take_series(directory: Path, pin: Pin, prefix: str | None = None) -> Whole:
    """Every patch of ``directory`` in its order, paths made relative to the package; no header is guessed.

    ``prefix`` is the package's directory in those paths (``.``: they are relative to it already); by default it is the pin's
    root where one of the patches has a path in it.  Raises :class:`InputError` when nothing of it is in the package.
    """
    lines = _order(directory)
    read = [(line, _read(directory, line)) for line in lines]
    left_out: list[tuple[str, str]] = []
    paths = [path for line, data in read for path in _paths(line, data)]
    if prefix is not None:
        below = prefix.strip("/").removeprefix(".")
    else:
        below = pin.root if any(path.startswith(f"{pin.root}/") for path in paths) else ""
    lead = f"{below}/" if below else ""
    taken: list[Taken] = []
    place: dict[str, int] = {}
    for line, data in read:
        place[line.name] = len(taken)
        item = _one(line, data, pin, lead)
        if isinstance(item, str):
            left_out.append((line.name, item))
            continue
        names = {other.name.casefold() for other in taken}
        number = 1
        while (name := item.name if number == 1 else f"{item.name}-{number}").casefold() in names:
            number += 1
        taken.append(replace(item, name=name))
    if not taken:
        raise InputError(
            f"none of its {len(lines)} patches has anything for the package: {left_out[0][0]}: {left_out[0][1]}",
            reason="path",
            file=str(directory),
            hint="--prefix names the package's directory in their paths",
        )
    comments, beside = _comments(directory, place, {name for name, _ in left_out}, len(taken))
    return Whole(taken, tuple(left_out), comments, beside)


def _order(directory: Path) -> tuple[SeriesLine, ...]:
    if (directory / "series").is_file():
        return read_series(directory / "series", str(directory / "series"))
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory", reason="usage")
    found = sorted(p.name for p in directory.iterdir() if p.suffix in (".patch", ".diff"))
    if not found:
        raise InputError("it has neither a series file nor patches", reason="series", file=str(directory))
    return tuple(SeriesLine(name, None, number) for number, name in enumerate(found, 1))


def _comments(
    directory: Path, place: dict[str, int], without: set[str], end: int
) -> tuple[dict[int, list[str]], dict[int, str]]:
    """What the series file says above its patches and beside them; of a patch that is left out only what stands above."""
    raw = read_file(directory / "series", str(directory / "series"), "series")
    above: dict[int, list[str]] = {}
    beside: dict[int, str] = {}
    pending: list[str] = []
    text = (raw or b"").decode("utf-8-sig")
    for line in text.removesuffix("\n").split("\n") if text else []:
        word = re.sub(r"(^|\s)#.*", "", line).split()[:1]
        if not word:
            pending.append(f"{line.rstrip()}\n")
            continue
        if word[0] in without:
            continue
        number = place[word[0]]
        above[number] = pending
        pending = []
        comment = re.search(r"\s(#.*)", line.rstrip())
        if comment is not None:
            beside[number] = comment[1]
    above[end] = pending
    return above, beside


def _read(directory: Path, line: SeriesLine) -> bytes:
    data = read_file(directory / line.name, str(directory / line.name), "series")
    if data is None:
        raise InputError(
            f"the series names {line.name}, and there is no such file in {directory}",
            reason="series",
            file=str(directory / "series"),
            line=line.line,
        )
    return data


def _paths(line: SeriesLine, data: bytes) -> list[str]:
    """Every path that the patch names, after its strip level; none when there is no diff in it."""
    try:
        changes = parse_patch(data, line.name, _strip(line)).files
    except InputError as error:
        if error.reason != "empty":
            raise
        return []
    return [path for change in changes for path in (change.old_path, change.new_path) if path is not None]


def _strip(line: SeriesLine) -> int:
    return 1 if line.strip is None else line.strip


def _one(line: SeriesLine, data: bytes, pin: Pin, lead: str) -> Taken | str:
    """The patch taken in, or why it is left out."""
    before, sections = cut(data)
    parts, left_out = [], []
    for section in sections:
        (change,) = parse_patch(section, line.name, _strip(line)).files
        if lead and not any((path or "").startswith(lead) for path in (change.old_path, change.new_path)):
            left_out.append(change.path)
            continue
        old, new = (_inside(path, lead, line.name) for path in (change.old_path, change.new_path))
        parts.append(renamed(section, change, old, new).rstrip(b"\n") + b"\n")
    if not sections:
        return "there is no unified diff in it"
    if not parts:
        return f"nothing of it is in {lead}"
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", re.sub(r"\.(patch|diff)$", "", line.name)).strip("-._+")[:MAX_NAME]
    text = before.decode("utf-8", "replace")
    if complete(text):
        return Taken(name or "patch", text.rstrip("\n").encode() + b"\n\n" + b"".join(parts), tuple(left_out), ())
    head, missing = _headers(text, f"{pin.distribution} {pin.version}")
    return Taken(name or "patch", head.encode() + b"".join(parts), tuple(left_out), missing)


def _inside(path: str | None, lead: str, source: str) -> str | None:
    if path is not None and not path.startswith(lead):
        raise InputError(
            f"{path} is outside {lead}, and the other name of the same change is inside",
            reason="path",
            file=source,
            hint="make the diff without renames: git diff --no-renames",
        )
    return None if path is None else path[len(lead) :]


def _headers(text: str, release: str) -> tuple[str, tuple[str, ...]]:
    """The text with a header paragraph of what it says of itself; the keys it does not say are left empty, but for the
    ``release`` it is taken in for."""
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
    found.setdefault("Cut-against", release)
    missing = tuple(key for key in _KEYS if key not in found)
    body = "\n".join(prose).strip()
    lines = [f"{key}: {found.get(key, '')}".rstrip() for key in _KEYS]
    lines += [f"{key}: {found[key]}" for key in _OPTIONAL if key in found]
    return (f"{body}\n\n" if body else "") + "\n".join(lines) + "\n\n", missing
