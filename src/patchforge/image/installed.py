"""The distribution inside a base: where it is installed, and the proof that it is the pinned wheel's, byte for byte."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import Refused
from patchforge.image.scan import Node
from patchforge.series.imagepin import ImagePin
from patchforge.series.pin import Flavor, Pin, normalize
from patchforge.tree.record import Record, to_record
from patchforge.tree.state import NAME

_INFO = re.compile(r"(?P<site>.+)/(?P<name>[^-/]+)-(?P<version>[^-/]+)\.dist-info/RECORD\Z")


@dataclass(frozen=True, slots=True)
class Found:
    """The distribution in an image: its site-packages, its dist-info's name, and the interpreter that imports it."""

    site: str
    info: str
    distribution: str
    version: str
    python: str

    @property
    def metadata(self) -> str:
        """The path of the dist-info."""
        return f"{self.site}/{self.info}"


def find(nodes: Mapping[str, Node], pin: Pin, flavor: Flavor, image: ImagePin) -> Found:
    """Find the pinned distribution.  Raises :class:`Refused` by name when there is not exactly one that can be patched."""
    wanted = {normalize(flavor.distribution), normalize(pin.distribution)}
    hits = [m for path in nodes if (m := _INFO.match(path)) and normalize(m["name"]) in wanted]
    if not hits:
        raise Refused(
            f"the base has no {flavor.distribution} installed (no dist-info with a RECORD)",
            reason="dist-missing",
            hint="pin a base that has it, or build with another backend, which installs it",
        )
    if len(hits) > 1:
        places = ", ".join(sorted(m["site"] for m in hits))
        raise Refused(f"the base has {flavor.distribution} in several places: {places}", reason="dist-twice")
    site, version = hits[0]["site"], hits[0]["version"]
    info = f"{hits[0]['name']}-{version}.dist-info"
    if version.partition("+")[0] != pin.version.partition("+")[0]:
        raise Refused(
            f"the base has {flavor.distribution} {version}, and the pin is {pin.version}", reason="base-not-pristine"
        )
    _not_editable(nodes.get(f"{site}/{info}/direct_url.json"), flavor)
    match = re.search(r"/python(3\.\d+)/", f"/{site}/")
    if match is not None and match[1] != image.minor:
        raise Refused(
            f"the base's Python is {match[1]}, and [image.{image.flavor}] says {image.python}",
            reason="python-mismatch",
            hint="correct 'python' in pin.toml, then 'patchforge lock --image'",
        )
    return Found(site, info, hits[0]["name"], version, _interpreter(nodes, site, image.minor))


def _not_editable(node: Node | None, flavor: Flavor) -> None:
    try:
        origin = json.loads(node.data) if node is not None and node.data is not None else {}
    except (ValueError, RecursionError):
        origin = {}
    if isinstance(origin, dict) and isinstance(origin.get("dir_info"), dict) and origin["dir_info"].get("editable"):
        raise Refused(f"{flavor.distribution} is an editable install in the base", reason="dist-editable")


def _interpreter(nodes: Mapping[str, Node], site: str, minor: str) -> str:
    """The absolute path of the interpreter whose site-packages ``site`` is."""
    prefix = site.partition("/lib/python")[0]
    for path in (
        f"{prefix}/bin/python{minor}",
        f"{prefix}/bin/python3",
        f"usr/bin/python{minor}",
        f"usr/local/bin/python{minor}",
    ):
        node = nodes.get(path)
        if node is not None and node.kind in ("file", "link", "other"):
            return f"/{path}"
    raise Refused(
        f"the base has no Python {minor} that imports from /{site}",
        reason="python-mismatch",
        hint="is it in bin/ beside lib/?",
    )


def prove(nodes: Mapping[str, Node], found: Found, wheel: Path) -> int:
    """Compare every file of ``wheel`` with the base's; return their number.  Raises :class:`Refused` naming some that differ."""
    with zipfile.ZipFile(wheel) as archive:
        record = next((n for n in archive.namelist() if n.endswith(".dist-info/RECORD") and n.count("/") == 1), None)
        if record is None:
            raise Refused("the wheel has no RECORD", reason="wheel", file=str(wheel))
        rows = Record(archive.read(record)).rows()
    wrong = []
    for path, row in rows.items():
        if path == record:
            continue
        node = nodes.get(f"{found.site}/{path}")
        if node is None or node.kind != "file":
            wrong.append(f"{path} is missing")
        elif to_record(node.sha256) != row.hash:
            wrong.append(f"{path} has other bytes")
    if wrong or f"{found.metadata}/{NAME}" in nodes:
        if f"{found.metadata}/{NAME}" in nodes:
            wrong.insert(0, "a series is applied to it already")
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise Refused(
            f"the base is not the pinned wheel's tree: {'; '.join(wrong[:3])}{more}",
            reason="base-not-pristine",
            hint="take a base with the untouched release: the series is applied to that and to nothing else",
        )
    return len(rows) - 1
