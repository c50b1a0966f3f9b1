"""The work of ``lock --image``: the base by digest, and a requirements lock with hashes, for each flavour."""

from __future__ import annotations

import os
from pathlib import Path

from patchforge.errors import InputError, Refused
from patchforge.image.clients import resolve
from patchforge.image.layout import read_base
from patchforge.image.requirements import (
    RequirementLock,
    check_wheel,
    engine_inputs,
    parse_requirements,
    read_requirements,
)
from patchforge.image.resolving import resolve as resolve_requirements
from patchforge.image.tool import requirements as tool_inputs
from patchforge.series.files import replace_file
from patchforge.series.imagepin import ImagePin, set_base
from patchforge.series.pin import Flavor, Pin, parse_pin
from patchforge.series.project import Series


def lock_images(
    series: Series, flavor: str | None, base: str | None, check: bool, refresh: bool
) -> list[tuple[str, str]]:
    """Bring the image inputs up to date, or with ``check`` say which are not: each file with what became of it.

    ``refresh`` resolves again although nothing the locks are made from has changed.
    """
    assert series.pin is not None and series.project is not None
    if base is not None and (check or flavor is None):
        raise InputError(
            "--base pins the base of one flavor", reason="usage", hint="name it with --flavor, without --check"
        )
    images = series.pin.images if flavor is None else (series.pin.image(flavor),)
    if not images:
        series.pin.image(None)
    folder = series.project / "series" / series.pin.id
    out = []
    if base is not None:
        out.append((_label(series, folder / "pin.toml"), pin_base(folder / "pin.toml", images[0], base, series)))
    for image in images:
        if not image.digest and base is None:
            raise InputError(
                f"[image.{image.flavor}]: the base {image.base or 'is missing, and'} has no digest",
                reason="base-unpinned",
                file=_label(series, folder / "pin.toml"),
                hint=f"'patchforge lock --image --flavor {image.flavor} --base NAME:TAG' asks the registry for it",
            )
        own = series.pin.flavor(image.flavor)
        out.append(_one(series, image.requirements, image, engine_inputs(series.pin, own, image), check, refresh, own))
        out.append(_one(series, image.tool, image, tool_inputs(), check, refresh, None))
    return out


def _label(series: Series, path: Path) -> str:
    assert series.project is not None
    return path.relative_to(series.project).as_posix()


def _one(
    series: Series,
    name: str,
    image: ImagePin,
    needs: tuple[str, ...],
    check: bool,
    refresh: bool,
    flavor: Flavor | None,
) -> tuple[str, str]:
    """One lock: read it, and resolve it again when it is not good."""
    assert series.pin is not None and series.project is not None
    path = series.project / "series" / series.pin.id / name
    label = _label(series, path)
    if not refresh or check:
        try:
            lock = read_requirements(path, label, image, needs)
            if flavor is not None:
                check_wheel(lock, series.pin, flavor)
            return label, "current"
        except (InputError, Refused):
            if check:
                return label, "stale"
    data = resolve_requirements(image, needs, os.environ)
    if flavor is not None:
        _prove(data, label, image, needs, series.pin, flavor)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.read_bytes() == data:
        return label, "current"
    replace_file(path, data)
    return label, "written"


def _prove(data: bytes, label: str, image: ImagePin, needs: tuple[str, ...], pin: Pin, flavor: Flavor) -> None:
    """A lock that does not hold the pinned wheel is not written."""
    check_wheel(RequirementLock(label, data, parse_requirements(data.decode(), label, "")), pin, flavor)


def pin_base(path: Path, image: ImagePin, base: str, series: Series) -> str:
    """Write the base's digest to ``pin.toml``; ``base`` is ``NAME:TAG``, asked of its registry, or an OCI layout here."""
    if (Path(base) / "oci-layout").is_file():
        found = read_base(Path(base), None, image.platform)
        name = f"localhost/{Path(base).absolute().name.lower()}"
        pinned = f"{name}@{found.digest}"
    elif "@" in base:
        pinned = base
    else:
        pinned = f"{base}@{resolve(base, os.environ)}"
    text = path.read_bytes().decode()
    new = set_base(text, image.flavor, pinned)
    import tomllib

    made = parse_pin(tomllib.loads(new), _label(series, path)).image(image.flavor)
    if not made.digest:
        raise InputError(
            f"{base!r} gives no image by digest", reason="base-unpinned", hint="NAME:TAG, or NAME@sha256:…"
        )
    if new == text:
        return "current"
    replace_file(path, new.encode())
    return "written"
