"""Which releases there are, and where their wheels lie: asked through pip once, then remembered."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from patchforge.errors import InputError, Refused
from patchforge.releases.pip import Found, find, listed
from patchforge.series.pin import Wheel

Say = Callable[[str], None]


def version_of(text: str) -> Version:
    """``text`` as a version.  Raises :class:`InputError`."""
    try:
        return Version(text)
    except InvalidVersion as error:
        raise InputError(f"'{text}' is not a version", reason="usage") from error


def newer(name: str, version: str) -> list[str]:
    """The final releases of ``name`` after ``version`` that suit this interpreter, oldest first."""
    after = version_of(version)
    found = sorted(v for v in map(_version, listed(name)) if v is not None and not v.is_prerelease and v > after)
    return [str(v) for v in found]


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def known(name: str, version: str, cache: Path, say: Say) -> Found:
    """Where the wheel of a release lies and what it hashes to: as remembered, or as pip finds it.

    A release that was found once is not asked for again, so that a scan works without a network.
    """
    version_of(version)
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    file = cache / "releases" / f"{name}-{version}-{python}.json"
    try:
        data = json.loads(file.read_bytes())
        wheel = Wheel(data["file"], data["sha256"])
        if re.fullmatch(r"[0-9a-f]{64}", wheel.sha256) and "/" not in wheel.file:
            return Found(data["name"], data["version"], wheel, data["requires_python"], data["url"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    say(f"asking pip for {name}=={version}")
    found = find(name, version)
    _remember(file, found)
    return found


def _remember(file: Path, found: Found) -> None:
    data = {
        "name": found.name,
        "version": found.version,
        "file": found.wheel.file,
        "sha256": found.wheel.sha256,
        "requires_python": found.requires_python,
        "url": found.url,
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}.{os.getpid()}")
        new.write_text(json.dumps(data))
        os.replace(new, file)
    except OSError as error:
        raise Refused(f"cannot write to the cache: {error}", reason="cache", hint="set XDG_CACHE_HOME") from error
