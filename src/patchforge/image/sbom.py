"""The bill of materials: CycloneDX 1.6, with the pristine release as ancestor and every patch in the pedigree."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from patchforge import __version__
from patchforge.headers import Header
from patchforge.headers.upstream import parse_upstream
from patchforge.image.requirements import RequirementLock
from patchforge.series.parsed import header_of
from patchforge.series.pin import Flavor, Pin, normalize
from patchforge.series.project import PatchFile, Series

_SPACE = uuid.UUID("6f9e1f8c-4a53-5d1e-9d0b-0a3d0b7c2f11")
"""The name space of serial numbers: the same series has the same one."""
_RESOLVES = {"fix": "defect", "backport": "defect"}


def make_sbom(
    series: Series, flavor: Flavor, epoch: int, lock: RequirementLock | None, image: Mapping[str, str]
) -> bytes:
    """The document: the patched distribution and, where ``lock`` is given, what is installed with it.

    ``image`` has ``name`` and ``base`` when the document is about an image, and is empty otherwise.  No clock is read:
    the same inputs give the same bytes.
    """
    pin = series.pin
    assert pin is not None
    main = patched(series, pin, flavor)
    rest = (
        []
        if lock is None
        else [
            _library(p.name, p.version) for n, p in sorted(lock.packages.items()) if n != normalize(flavor.distribution)
        ]
    )
    subject = _container(image, pin) if image else main
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(
            _SPACE, f"{series.sha256} {flavor.name} {sorted(image.items())} {lock and lock.sha256}"
        ).urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": {"components": [{"type": "application", "name": "patchforge", "version": __version__}]},
            "component": subject,
        },
        "components": [*([main] if image else []), *rest],
        "dependencies": _dependencies(subject, main, rest),
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


def patched(series: Series, pin: Pin, flavor: Flavor) -> dict[str, Any]:
    """The patched distribution as a component.  ``pedigree.patches`` is a set: the order is in the properties."""
    ancestor: dict[str, Any] = {
        "type": "library",
        "name": flavor.distribution,
        "version": pin.version,
        "purl": _purl(flavor.distribution, pin.version),
    }
    if len(flavor.wheels) == 1:
        ancestor["hashes"] = [{"alg": "SHA-256", "content": flavor.wheels[0].sha256}]
    headers = [(file, header_of(file)) for file in series.patches]
    properties = [{"name": "io.patchforge:series-sha256", "value": series.sha256}]
    for number, (file, header) in enumerate(headers, 1):
        value = f"{file.name} sha256:{file.sha256} {' '.join(header.get('What').split())}"
        properties.append({"name": f"io.patchforge:patch:{number:03d}", "value": value})
    return {
        "type": "library",
        "bom-ref": f"patched:{flavor.distribution}@{pin.version}+{series.sha256[:12]}",
        "name": flavor.distribution,
        "version": f"{pin.version}{'.' if '+' in pin.version else '+'}patchforge.{series.sha256[:12]}",
        "description": f"{flavor.distribution} {pin.version} with {len(series.patches)} downstream patches",
        "pedigree": {
            "ancestors": [ancestor],
            "patches": [_patch(file, header) for file, header in headers],
            "notes": "The order of the patches is in the component's properties.",
        },
        "properties": properties,
    }


def _patch(file: PatchFile, header: Header) -> dict[str, Any]:
    kind = header.get("Kind")
    text = file.data.decode("utf-8", "replace")
    out: dict[str, Any] = {
        "type": "backport" if kind == "backport" else "unofficial",
        "diff": {"text": {"contentType": "text/x-diff", "content": text}},
    }
    resolves = []
    for ref in parse_upstream(header.get("Upstream")):
        issue: dict[str, Any] = {"type": _RESOLVES.get(kind, "enhancement"), "id": str(ref), "name": file.name}
        if ref.url:
            issue["references"] = [ref.url]
        resolves.append(issue)
    if not resolves:
        resolves = [{"type": _RESOLVES.get(kind, "enhancement"), "name": file.name}]
    resolves[0]["description"] = " ".join(header.get("What").split())
    return {**out, "resolves": resolves}


def _library(name: str, version: str) -> dict[str, Any]:
    purl = _purl(name, version)
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{normalize(name)}@{version.replace('+', '%2B')}"


def _container(image: Mapping[str, str], pin: Pin) -> dict[str, Any]:
    return {
        "type": "container",
        "bom-ref": f"image:{image['name']}",
        "name": image["name"],
        "version": pin.version,
        "properties": [{"name": "io.patchforge:base", "value": image["base"]}],
    }


def _dependencies(subject: dict[str, Any], main: dict[str, Any], rest: list[dict[str, Any]]) -> list[dict[str, Any]]:
    needs = [item["bom-ref"] for item in rest]
    out = [{"ref": main["bom-ref"], "dependsOn": needs}]
    if subject is not main:
        out.insert(0, {"ref": subject["bom-ref"], "dependsOn": [main["bom-ref"]]})
    return out + [{"ref": ref} for ref in needs]
