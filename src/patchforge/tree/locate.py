"""Finding an installed distribution: in this interpreter, in another one, or in a directory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import InputError, TreeError

_INFO = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)\.dist-info\Z")
# The current directory is first in sys.path with -c: it is dropped before anything can be imported from it.
_PROBE = "import sys;sys.path[:]=[p for p in sys.path if p];import json;print(json.dumps(sys.path))"


@dataclass(frozen=True, slots=True)
class Installed:
    """A distribution on disk: the directory that holds package and dist-info, and its metadata directory."""

    site: Path
    info: str
    distribution: str
    version: str


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def find_in(site: Path, names: Iterable[str]) -> list[Installed]:
    """The distributions called one of ``names`` whose dist-info lies directly in ``site``."""
    wanted = {_normalize(name) for name in names}
    try:
        entries = os.listdir(site)
    except OSError:
        return []
    found = []
    for entry in sorted(entries):
        match = _INFO.match(entry)
        if match and _normalize(match["name"]) in wanted and (site / entry).is_dir():
            found.append(Installed(site, entry, _normalize(match["name"]), match["version"]))
    return found


def search_path(python: str | None) -> list[Path]:
    """``sys.path`` of this interpreter, or of the interpreter ``python`` (started isolated from the environment)."""
    if python is None:
        return [Path(p) for p in sys.path if p]
    try:
        # -E keeps PYTHONPATH out; user site and .pth files are what that interpreter really imports from.
        done = subprocess.run(
            [python, "-E", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return [Path(p) for p in json.loads(done.stdout.splitlines()[-1])]
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        what = "it prints no list of directories" if isinstance(error, (ValueError, IndexError)) else error
        raise InputError(
            f"cannot ask {python} where it imports from: {what}",
            reason="usage",
            hint="give the path of a Python interpreter, such as /opt/venv/bin/python",
        ) from error


def locate(names: list[str], python: str | None) -> Installed:
    """The installed distribution of an interpreter.  Raises :class:`TreeError` when it is absent or cannot be patched."""
    path = search_path(python)
    for site in path:
        found = find_in(site, names)
        if found:
            return _only(found)
    for site in path:
        if site.is_file() and site.suffix in (".zip", ".egg", ".whl"):
            raise TreeError(f"{names[0]} may lie in {site}: a zipped tree cannot be patched", reason="tree")
    where = f"of {python}" if python else f"of {sys.executable}"
    raise TreeError(
        f"{' or '.join(names)} is not installed in the environment {where}",
        reason="not-installed",
        hint="name another interpreter with --python, a directory with --tree, or use --fetch",
    )


def _only(found: list[Installed]) -> Installed:
    if len(found) > 1:
        raise TreeError(
            f"{found[0].site} holds several dist-info directories of {found[0].distribution}: "
            f"{', '.join(f.info for f in found)}",
            reason="tree",
            hint="an upgrade was interrupted: reinstall the distribution",
        )
    check_installed(found[0])
    return found[0]


def check_installed(installed: Installed) -> None:
    """Refuse an editable install and one without RECORD."""
    info = installed.site / installed.info
    url = info / "direct_url.json"
    try:
        origin = json.loads(url.read_bytes()) if url.is_file() else {}
    except (OSError, ValueError, RecursionError):
        origin = {}
    if isinstance(origin, dict) and isinstance(origin.get("dir_info"), dict) and origin["dir_info"].get("editable"):
        raise TreeError(
            f"{installed.distribution} is an editable install: its files belong to a source checkout",
            reason="editable",
            hint="install the pinned wheel, or patch the checkout with --quilt DIR --tree DIR",
        )
    if not (info / "RECORD").is_file():
        raise TreeError(
            f"{installed.info} has no RECORD, so nothing proves what was installed",
            reason="tree",
            hint="reinstall it with pip",
        )


def in_directory(directory: Path, names: list[str], root: str) -> Installed | None:
    """The distribution in ``directory`` (its site-packages, or the package directory itself); ``None`` for a bare tree."""
    directory = directory.absolute()
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory", reason="usage")
    candidates = [directory]
    depth = len(root.split("/"))
    if directory.parts[-depth:] == tuple(root.split("/")):
        candidates.append(Path(*directory.parts[:-depth]))
    for site in candidates:
        found = find_in(site, names)
        if found:
            return _only(found)
    return None
