"""The work of ``init``: a new pin in a new or an existing project."""

from __future__ import annotations

import re
from pathlib import Path

from patchforge import resources
from patchforge.cli.session import cache_directory
from patchforge.cli.targets import progress
from patchforge.errors import InputError
from patchforge.image.tool import make_wheel, wheel_name
from patchforge.releases.cache import fetch
from patchforge.releases.packages import package_root
from patchforge.releases.pip import find
from patchforge.series.files import replace_file
from patchforge.series.pin import Flavor, Pin, dump_pin, normalize
from patchforge.table.document import NAME, begin

_RELEASE = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*([0-9][0-9A-Za-z.+!_-]*)\Z")
_WORKFLOW = ".github/workflows/patches.yml"


def start(release: str, root: str | None, strip: int, base: Path, quiet: bool) -> tuple[str, list[str]]:
    """Write the files of a new pin below ``base``; return its name and the files.  Nothing existing is overwritten."""
    match = _RELEASE.match(release.strip())
    if match is None:
        raise InputError(
            f"{release!r} is not NAME==VERSION", reason="usage", hint="one exact release, such as 'vllm==0.31.0'"
        )
    name, version = normalize(match[1]), match[2]
    directory = base / "series" / f"{name}-{version}"
    if directory.exists():
        raise InputError(
            f"{directory} exists already", reason="exists", hint="edit its pin.toml, or choose another release"
        )
    with progress(quiet) as show:
        show(f"asking pip for {name}=={version}", 0, 0)
        found = find(name, version)
        flavor = Flavor("default", name, (found.wheel,))
        guess = Pin(name, version, name, strip, (flavor,))
        file = fetch(guess, flavor, found.wheel, cache_directory(), lambda text: show(text, 0, 0))
        root = package_root(file, name, root)
    pin = Pin(name, version, root, strip, (flavor,), found.requires_python)
    files = {
        f"series/{pin.id}/pin.toml": dump_pin(pin),
        f"series/{pin.id}/series": _filled("series", pin),
        f"patches/{pin.id}/.gitattributes": b"# Patches are bytes: git must never convert their line ends.\n*.patch -text\n",
        NAME: _filled("PATCHES.md", pin),
    }
    if not (base / _WORKFLOW).exists():  # it installs this very patchforge, which no index is known to have
        files |= {f".github/{wheel_name()}": make_wheel(), _WORKFLOW: _filled("ci.yml", pin)}
    written = []
    for path, data in files.items():
        target = base / path
        if target.exists():
            if path != NAME:
                continue
            have = target.read_bytes()
            if begin(pin.id).encode() in have:
                continue
            marker = _filled("PATCHES.md", pin).decode().partition("\n<!--")[2]
            data = have.rstrip(b"\n") + f"\n\n## {name} {version}\n\n<!--{marker}".encode()
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, data)
        written.append(path)
    return pin.id, written


def _filled(template: str, pin: Pin) -> bytes:
    import string

    text = string.Template(resources.template(template))
    return text.substitute(name=pin.distribution, version=pin.version, pin=pin.id, begin=begin(pin.id)).encode()
