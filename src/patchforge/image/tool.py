"""patchforge's own wheel, made from the running patchforge: an image must hold the one that built it."""

from __future__ import annotations

import io
import re
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

import patchforge
from patchforge.errors import Refused
from patchforge.tree.record import record_hash

_DATE = (1980, 1, 1, 0, 0, 0)
_SHIPPED = ("headers.schema.yaml", "templates")


def wheel_name() -> str:
    """The wheel's file name."""
    return f"patchforge-{patchforge.__version__}-py3-none-any.whl"


def requirements() -> tuple[str, ...]:
    """What patchforge needs to run, as its own metadata says."""
    project = _project()
    if project is not None:
        return tuple(sorted(normalized(need) for need in project["dependencies"]))
    try:
        needs = metadata.requires("patchforge") or []
    except metadata.PackageNotFoundError as error:
        raise Refused("patchforge's own metadata is missing: reinstall it", reason="tool") from error
    return tuple(sorted(normalized(need) for need in needs if "extra ==" not in need))


def _project() -> dict[str, Any] | None:
    """The ``[project]`` table of a source checkout; ``None`` for an installed patchforge."""
    path = Path(patchforge.__file__).resolve().parents[2] / "pyproject.toml"
    if not path.is_file():
        return None
    import tomllib

    project = tomllib.loads(path.read_text("utf-8")).get("project", {})
    return project if project.get("name") == "patchforge" else None


def files() -> dict[str, bytes]:
    """Every file of the package by its path in the wheel: modules, marker, and what ships with them under ``_data``."""
    package = Path(patchforge.__file__).resolve().parent
    out = {
        f"patchforge/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package.rglob("*")
        if path.is_file()
        and "_data" not in path.relative_to(package).parts
        and (path.suffix == ".py" or path.name == "py.typed")
    }
    source = package / "_data" if (package / "_data").is_dir() else package.parents[1]
    for name in _SHIPPED:
        top = source / name
        for path in [top] if top.is_file() else top.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                out[f"patchforge/_data/{path.relative_to(source).as_posix()}"] = path.read_bytes()
    return out


def make_wheel() -> bytes:
    """The wheel: the same bytes from a checkout and from an installation of the same release."""
    info = f"patchforge-{patchforge.__version__}.dist-info"
    needs = "".join(f"Requires-Dist: {need}\n" for need in requirements())
    found = files()
    found[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: patchforge\nVersion: {patchforge.__version__}\n"
        f"License: Apache-2.0\nRequires-Python: >=3.11\n{needs}"
    ).encode()
    found[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: patchforge\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    found[f"{info}/entry_points.txt"] = b"[console_scripts]\npatchforge = patchforge.cli:main\n"
    rows = [f"{path},{record_hash(data)},{len(data)}" for path, data in sorted(found.items())]
    found[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for path, data in sorted(found.items()):
            entry = zipfile.ZipInfo(path, _DATE)
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3
            archive.writestr(entry, data)
    return packed.getvalue()


def normalized(requirement: str) -> str:
    """A requirement in one spelling, for comparing: an installer's metadata orders the clauses of a version its own way."""
    try:
        return str(Requirement(requirement))
    except InvalidRequirement:
        return re.sub(r"\s+", "", requirement)
