"""What a wheel holds: the package directory a new pin is about."""

from __future__ import annotations

import zipfile
from pathlib import Path

from patchforge.errors import InputError
from patchforge.series.pin import normalize


def package_root(wheel: Path, name: str, asked: str | None = None) -> str:
    """The package of ``wheel`` that patches will be relative to: ``asked`` for, named like the distribution, or the only one.

    Raises :class:`InputError` listing the choices.
    """
    with zipfile.ZipFile(wheel) as archive:
        files = [n for n in archive.namelist() if n.endswith((".py", ".pyi"))]
    tops = sorted({n.partition("/")[0] for n in files if "/" in n and n.partition("/")[0].isidentifier()})
    modules = sorted(n.rpartition(".")[0] for n in files if "/" not in n)
    if not tops:
        raise InputError(
            f"{name} has no package: {'its module ' + modules[0] if modules else 'nothing in it'} stands alone, and patchforge "
            "patches packages",
            reason="pin",
            hint="keep the patches in bare mode, with --quilt DIR and --tree DIR",
        )
    if asked is not None:
        inside = asked.strip("/")
        if not any(n.startswith(f"{inside}/") for n in files) or not all(p.isidentifier() for p in inside.split("/")):
            raise InputError(
                f"the wheel has no package '{asked}'", reason="pin", hint=f"its packages: {', '.join(tops)}"
            )
        return inside
    wanted = normalize(name).replace("-", "_")
    for top in tops:
        if top.lower() == wanted:
            return top
    if len(tops) == 1:
        return tops[0]
    raise InputError(
        f"the wheel holds {len(tops)} packages: {', '.join(tops)}",
        reason="pin",
        hint="say which one the patches are relative to: --root PACKAGE",
    )
