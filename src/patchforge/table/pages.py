"""One page per patch and an index of them, made from preambles, headers and diffs.  Pure: no file is read.

A project asks for them with one line in PATCHES.md, ``<!-- patchforge:pages PIN DIRECTORY -->``; from then on they are written by
``table`` and checked by ``check-table``, like the table itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchforge.errors import InputError
from patchforge.series.parsed import ParsedPatch, Schema, parse_series_patches
from patchforge.series.project import Series
from patchforge.table.document import NAME, cell

INDEX = "README.md"
_ASKED = re.compile(r"<!-- patchforge:pages ([A-Za-z0-9][A-Za-z0-9._+-]*) (\S+) -->")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_KNOB = re.compile(r"([A-Za-z_]\w*) \(([^()]*)\)")
_ROWS = ("Kind", "Upstream", "Cut-against", "Retires-when", "Supersedes", "Requires", "Probe", "Tests", "Imported")


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one pin: their directory, relative to the project, and text by file name, the index among them."""

    pin: str
    directory: str
    texts: dict[str, str]


def mark(pin: str) -> str:
    """The first line of every page: by it ``table`` knows the pages it may rewrite or remove."""
    return f"<!-- Written by 'patchforge table' from the patches of {pin}: change those. -->"


def asked_for(document: str, pin: str) -> str | None:
    """The directory in which ``document`` wants the pages of ``pin``; ``None`` when it wants none.

    Raises :class:`InputError` when it is asked for twice, or is not a plain relative path.
    """
    found = [
        (n, m[2]) for n, line in enumerate(document.splitlines(), 1) if (m := _ASKED.fullmatch(line)) and m[1] == pin
    ]
    if not found:
        return None
    line, directory = found[-1]
    if len(found) > 1:
        raise InputError(f"the pages of {pin} are asked for twice", reason="markers", file=NAME, line=line)
    if not all(_PART.fullmatch(part) for part in directory.split("/")):
        raise InputError(
            f"not a directory for pages: {directory!r}",
            reason="markers",
            file=NAME,
            line=line,
            hint="name one inside the project by plain words, such as docs/patches",
        )
    return directory


def make_pages(series: Series, schema: Schema, directory: str) -> Pages:
    """Every page of ``series``.  Raises :class:`InputError` for a patch that cannot be read, or whose page would be the index."""
    assert series.pin is not None
    parsed = parse_series_patches(series, schema)
    texts = {}
    up = "../" * len(directory.split("/"))
    for one in parsed:
        if f"{one.file.name}.md".casefold() == INDEX.casefold():
            raise InputError(
                "a patch of this name has no page: it would be the index",
                reason="pages",
                file=one.file.label,
                hint="rename it",
            )
        texts[f"{one.file.name}.md"] = _page(series.pin.id, one, up)
    texts[INDEX] = _index(series.pin.id, parsed, up)
    return Pages(series.pin.id, directory, texts)


def _index(pin: str, parsed: list[ParsedPatch], up: str) -> str:
    lines = [mark(pin), f"# The patches of {pin}", ""]
    lines += [f"In the order they apply; [{NAME}]({up}{NAME}) has when each retires.", ""]
    lines += ["| # | Patch | Kind | What |", "| ---: | --- | --- | --- |"]
    for number, one in enumerate(parsed, 1):
        assert one.header is not None
        name = one.file.name
        lines.append(
            f"| {number} | [{cell(name)}]({name}.md) | {one.header.get('Kind')} | {cell(one.header.get('What'))} |"
        )
    return "\n".join([*lines, ""])


def _page(pin: str, one: ParsedPatch, up: str) -> str:
    """The page of one patch, which says nothing of the others, so that it changes with its own patch alone."""
    assert one.header is not None
    header = one.header
    lines = [mark(pin), f"# {one.file.name}", "", f"> {cell(header.get('What'))}", ""]
    lines += [header.preamble, "", "## Facts", "", "| | |", "| --- | --- |"]
    lines.append(f"| Patch | [{cell(one.file.label)}]({up}{one.file.label}) |")
    lines += [f"| {key} | {_value(one, key, up)} |" for key in _ROWS if header.get(key)]
    lines += [
        "",
        *_knobs(header.get("Env")),
        "## Files",
        "",
        "| file | | added | removed |",
        "| --- | --- | ---: | ---: |",
    ]
    for file in one.patch.files:
        added, removed = sum(h.added for h in file.hunks), sum(h.removed for h in file.hunks)
        lines.append(f"| `{file.path}` | {file.action} | {added} | {removed} |")
    return "\n".join([*lines, ""])


def _value(one: ParsedPatch, key: str, up: str) -> str:
    """A header as a table cell, with links where it names patches or files of the project."""
    assert one.header is not None
    if key in ("Supersedes", "Requires"):
        return ", ".join(f"[{cell(name)}]({name}.md)" for name in one.header.names(key))
    text = one.header.get(key)
    if key == "Tests":
        return ", ".join(f"[{cell(path)}]({up}{path})" for path in re.split(r"[,\s]+", text.strip()))
    if key == "Probe":
        return f"`{' '.join(text.split())}`".replace("|", "\\|")
    return cell(text)


def _knobs(text: str) -> list[str]:
    """The section of the knobs, empty without any."""
    if not text:
        return []
    rows = []
    for name, about in _KNOB.findall(text):
        kind, _, default = about.partition(",")
        rows.append(f"| `{name}` | {cell(kind)} | {cell(default)} |")
    return ["## Knobs", "", "| variable | type | default |", "| --- | --- | --- |", *rows, ""]
