"""What the installed tree and its series offer a server: environment variables, patches, the knobs patches add."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from patchforge.errors import InputError
from patchforge.series.parsed import header_of
from patchforge.series.project import Series
from patchforge.serving.table import Case, Knob, Output, Registry
from patchforge.tree.target import Target

_ENTRY = re.compile(r"([A-Z][A-Z0-9_]*)[ \t]*(?:\(([^(),]+)(?:,[ \t]*([^()]*))?\))?[ \t]*(?:[,;]|\Z)")


@dataclass(frozen=True, slots=True)
class Installed:
    """``variables`` are the environment variables the package knows, ``None`` where the table names no registry;
    ``knobs`` those that patches of the series add, from their headers, by patch."""

    distribution: str
    version: str
    patches: frozenset[str]
    variables: frozenset[str] | None = None
    knobs: tuple[tuple[str, Knob], ...] = ()

    def lacks(self, patches: tuple[str, ...]) -> list[str]:
        """Those of ``patches`` the series does not carry."""
        return [name for name in patches if name not in self.patches]


def read_installed(series: Series, target: Target, registry: Registry | None) -> Installed:
    """Read it from an opened tree.  Raises :class:`InputError` when the registry is not where the table says."""
    return Installed(
        target.distribution,
        target.version,
        frozenset(patch.name for patch in series.patches),
        None if registry is None else _variables(target, registry),
        series_knobs(series),
    )


def series_knobs(series: Series) -> tuple[tuple[str, Knob], ...]:
    """The knobs the patches' ``Env`` headers declare, each with its patch."""
    return tuple((patch.name, knob) for patch in series.patches for knob in header_knobs(header_of(patch).get("Env")))


def header_knobs(text: str) -> list[Knob]:
    """The knobs of an ``Env`` header, ``NAME (type, default)``: a type this table knows is checked, any other is text."""
    found = []
    for name, kind, default in _ENTRY.findall(text):
        word = kind.strip()
        boolean = word == "bool"
        limits: tuple[float | None, float | None] = (None, None)
        if word in ("int", "float"):
            limits = (-(2.0**53), 2.0**53)
        what = f"added by a patch; default {default.strip()}" if default.strip() else "added by a patch"
        output = Output(name, is_flag=False, when={name: True}) if boolean else Output(name, is_flag=False)
        outputs = (output, Output(name, is_flag=False, when={name: False}, value="0")) if boolean else (output,)
        found.append(
            Knob(
                name,
                what,
                {"bool": "boolean", "int": "integer", "float": "number"}.get(word, "text"),
                minimum=limits[0],
                maximum=limits[1],
                default=(Case(None),),
                becomes=outputs,
            )
        )
    return found


def registry_names(source: bytes, name: str) -> frozenset[str] | None:
    """The string keys of the dictionary assigned to ``name`` at the top of a module; ``None`` when there is none."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if isinstance(target, ast.Name) and target.id == name and isinstance(value, ast.Dict):
            keys = [key.value for key in value.keys if isinstance(key, ast.Constant)]
            return frozenset(key for key in keys if isinstance(key, str))
    return None


def _variables(target: Target, registry: Registry) -> frozenset[str]:
    found = target.read(registry.file)
    try:
        names = None if found is None else registry_names(found.data, registry.name)
    except (SyntaxError, ValueError, RecursionError):
        names = None
    if not names:
        raise InputError(
            f"{registry.file} of the installed tree has no dictionary {registry.name}",
            reason="modes",
            hint="this table is for another release",
        )
    return names
