"""Where an image comes from: an in-toto statement with a SLSA v1 predicate, about a digest and outside it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from patchforge import __version__
from patchforge.image import facts
from patchforge.image.checks import Inputs
from patchforge.image.layer import codec

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD = "urn:patchforge:build-image:1"


def make_provenance(
    inputs: Inputs, backend: str, subject: tuple[str, str], started: datetime, finished: datetime, more: dict[str, str]
) -> bytes:
    """The statement about ``subject``, ``(name, sha256:…)``; ``more`` says what the backend knows of itself."""
    pin, series = inputs.series.pin, inputs.series
    assert pin is not None
    name, digest = subject
    materials = [
        _material(f"base image {inputs.image.base.partition('@')[0]}", inputs.image.digest.removeprefix("sha256:")),
        *(_material(f"wheel {wheel.file}", wheel.sha256) for wheel in inputs.flavor.wheels),
        _material(f"requirements {inputs.engine.label}", inputs.engine.sha256),
        _material(f"requirements {inputs.tool.label}", inputs.tool.sha256),
        _material(f"lock {series.lock_label}", facts.lock_sha256(inputs)),
        *(_material(f"patch {patch.label}", patch.sha256) for patch in series.patches),
    ]
    if inputs.source.revision:
        materials.append({"name": "project", "digest": {"gitCommit": inputs.source.revision}})
    document: dict[str, Any] = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {
                    "pin": pin.id,
                    "flavor": inputs.flavor.name,
                    "backend": backend,
                    "platform": inputs.image.platform,
                    "dirty": list(inputs.source.dirty),
                },
                "internalParameters": {
                    "seriesSha256": series.sha256,
                    "treeSha256": facts.tree_sha256(inputs),
                    "epoch": inputs.image.epoch,
                    "bytecode": inputs.image.bytecode,
                    "codec": codec(),
                    **more,
                },
                "resolvedDependencies": materials,
            },
            "runDetails": {
                "builder": {"id": "urn:patchforge:builder", "version": {"patchforge": __version__}},
                "metadata": {"startedOn": _time(started), "finishedOn": _time(finished)},
            },
        },
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def _material(name: str, sha256: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": sha256}}


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
