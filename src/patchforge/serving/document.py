"""A YAML document with the line of every value in it, read strictly: no duplicate keys, no aliases, no tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patchforge.errors import InputError

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """``data`` as read, and the line (from 1) of every key and item by its path."""

    data: Any
    label: str
    lines: Mapping[Place, int]

    def line(self, place: Place) -> int:
        """The line of ``place``, or of the nearest thing around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_document(text: bytes, label: str) -> Document:
    """Parse ``text``.  Raises :class:`InputError` with the line."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    lines: dict[Place, int] = {}
    try:
        node = loader.get_single_node()
        if node is None:
            raise InputError("the file is empty", reason="modes", file=label, line=1)
        _walk(node, (), lines, set(), label)
        return Document(loader.construct_document(node), label, lines)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error) or type(error).__name__
        raise InputError(
            f"this is not YAML as it is read here: {why}",
            reason="modes",
            file=label,
            line=None if mark is None else mark.line + 1,
        ) from error
    finally:
        loader.dispose()


def _walk(node: Any, place: Place, lines: dict[Place, int], seen: set[int], label: str) -> None:
    lines.setdefault(place, node.start_mark.line + 1)
    if id(node) in seen:
        raise InputError(
            "an alias: write the value out",
            reason="modes",
            file=label,
            line=lines[place],
            hint="every value stands once",
        )
    seen.add(id(node))
    if node.id == "mapping":
        keys: set[str] = set()
        for key, value in node.value:
            name = key.value if key.id == "scalar" else None
            line = key.start_mark.line + 1
            if name is None or name in keys:
                what = "a key that is not a word" if name is None else f"'{name}' stands here twice"
                raise InputError(what, reason="modes", file=label, line=line)
            keys.add(name)
            lines[(*place, name)] = line
            _walk(value, (*place, name), lines, seen, label)
    elif node.id == "sequence":
        for number, value in enumerate(node.value):
            _walk(value, (*place, number), lines, seen, label)
