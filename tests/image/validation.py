"""What others' programs and schemas say of the files a build leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

COUNT = {"type": "integer", "format": "int32"}
SHARE = {"type": ["integer", "string"]}
POD = {
    "type": "object",
    "properties": {"metadata": {"type": "object"}, "spec": {"type": "object"}},
    "additionalProperties": False,
}


def group(required: list[str], **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


# The fields, types and values of the LeaderWorkerSet's API, leaderworkerset.x-k8s.io/v1, around its pods.
LEADER_WORKER_SET = group(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "leaderworkerset.x-k8s.io/v1"},
    kind={"const": "LeaderWorkerSet"},
    metadata={"type": "object"},
    spec=group(
        ["leaderWorkerTemplate"],
        leaderWorkerTemplate=group(
            ["workerTemplate"],
            leaderTemplate=POD,
            workerTemplate=POD,
            restartPolicy={"enum": ["Default", "RecreateGroupOnPodRestart"]},
            size=COUNT,
            subGroupPolicy=group([], subGroupSize=COUNT),
        ),
        networkConfig=group(["subdomainPolicy"], subdomainPolicy={"type": "string"}),
        replicas=COUNT,
        rolloutStrategy=group(
            ["type"],
            type={"enum": ["RollingUpdate"]},
            rollingUpdateConfiguration=group([], maxSurge=SHARE, maxUnavailable=SHARE),
        ),
        startupPolicy={"enum": ["LeaderCreated", "LeaderReady"]},
    ),
)

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

    The set is no part of Kubernetes: its pods are, and are checked as pods; what is around them by the fields of its own API.
    """
    validate = pytest.importorskip("kubernetes_validate")
    latest = validate.latest_version()
    documents = list(yaml.safe_load_all((top / "kubernetes/deployment.yaml").read_text()))
    for document in documents:
        validate.validate(document, latest, strict=True)
    (workers,) = yaml.safe_load_all((top / "kubernetes/leaderworkerset.yaml").read_text())
    jsonschema.validate(workers, LEADER_WORKER_SET)
    templates = workers["spec"]["leaderWorkerTemplate"]
    for role in ("leaderTemplate", "workerTemplate"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **templates[role]["metadata"]}}
        validate.validate({**pod, "spec": templates[role]["spec"]}, latest, strict=True)
    return documents, workers


def valid_sbom(text: str) -> None:
    """The bill of materials is valid by CycloneDX's own strict schema."""
    schema = pytest.importorskip("cyclonedx.schema")
    strict = pytest.importorskip("cyclonedx.validation.json").JsonStrictValidator(schema.SchemaVersion.V1_6)
    error = strict.validate_str(text)
    assert error is None, error
