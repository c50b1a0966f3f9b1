"""What others' programs and schemas say of the files a build leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PROGRAMS = Path(sys.executable).parent


def program(name: str) -> str:
    found = PROGRAMS / name
    if not found.is_file():
        pytest.skip(f"{name} is not installed")
    return str(found)


def lint_dockerfile(context: Path) -> None:
    """hadolint has nothing to say."""
    command = [program("hadolint"), str(context / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def compose(context: Path, *words: str) -> Any:
    """What ``docker compose config`` makes of the context."""
    command = [program("docker-compose"), "--project-directory", str(context), "-f", str(context / "compose.yaml")]
    done = subprocess.run([*command, *words, "config", "--format", "json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kubernetes(top: Path) -> tuple[list[Any], Any]:
    """The documents of the Deployment's file and the LeaderWorkerSet below ``top``, by Kubernetes' own schemas.

    The set is no part of Kubernetes: its pods are, and are checked as pods.
    """
    validate = pytest.importorskip("kubernetes_validate")
    latest = validate.latest_version()
    documents = list(yaml.safe_load_all((top / "kubernetes/deployment.yaml").read_text()))
    for document in documents:
        validate.validate(document, latest, strict=True)
    (group,) = yaml.safe_load_all((top / "kubernetes/leaderworkerset.yaml").read_text())
    templates = group["spec"]["leaderWorkerTemplate"]
    for role in ("leaderTemplate", "workerTemplate"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **templates[role]["metadata"]}}
        validate.validate({**pod, "spec": templates[role]["spec"]}, latest, strict=True)
    return documents, group


def valid_sbom(text: str) -> None:
    """The bill of materials is valid by CycloneDX's own strict schema."""
    schema = pytest.importorskip("cyclonedx.schema")
    strict = pytest.importorskip("cyclonedx.validation.json").JsonStrictValidator(schema.SchemaVersion.V1_6)
    error = strict.validate_str(text)
    assert error is None, error
