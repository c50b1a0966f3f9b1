"""What a wheel holds: the package directory a new pin is about."""

from __future__ import annotations

import zipfile
from pathlib import Path

from patchforge.errors import InputError
from patchforge.series.pin import normalize


def package_root(wheel: Path, name: str) -> str:
    """The top-level package of ``wheel`` that patches will be relative to.

    The one named like the distribution, else the only one.  Raises :class:`InputError` listing the choices.
    """
    with zipfile.ZipFile(wheel) as archive:
        tops = sorted(
            {
                n.partition("/")[0]
                for n in archive.namelist()
                if "/" in n and n.endswith(".py") and n.partition("/")[0].isidentifier()
            }
        )
    wanted = normalize(name).replace("-", "_")
    for top in tops:
        if top.lower() == wanted:
            return top
    if len(tops) == 1:
        return tops[0]
    raise InputError(
        f"the wheel holds {len(tops)} packages: {', '.join(tops) or 'none'}",
        reason="pin",
        hint="say which one the patches are relative to: --root PACKAGE",
    )
