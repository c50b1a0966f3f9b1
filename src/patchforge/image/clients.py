"""The other builders, each through its own client: argument lists, never a shell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from patchforge.errors import InputError, Refused
from patchforge.image.layer import MTIME

BACKENDS = ("context", "oci", "buildah", "podman", "buildx")
_REFERENCE = re.compile(
    r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:\d+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?\Z"
)
_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")
PIP_CONF = "pip.conf"


def check_reference(name: str) -> str:
    """``name`` when it is ``HOST/PATH:TAG``.  Raises :class:`InputError`."""
    if not _REFERENCE.match(name) or "/" not in name or ":" not in name.rpartition("/")[2]:
        raise InputError(f"{name!r} is not a full image name", reason="usage", hint="HOST/PATH:TAG, in small letters")
    return name


def commands(
    backend: str, context: Path, layout: Path, name: str, platform: str, extra: tuple[str, ...], pip_conf: Path | None
) -> list[list[str]]:
    """The commands that build ``context`` and write the image to the OCI layout ``layout``, in order."""
    epoch = f"SOURCE_DATE_EPOCH={MTIME}"
    secret = [] if pip_conf is None else ["--secret", f"id={PIP_CONF},src={pip_conf}"]
    file = str(context / "Dockerfile")
    if backend in ("buildah", "podman"):
        verb = ["bud"] if backend == "buildah" else ["build"]
        build = [
            *(
                backend,
                *verb,
                "--format",
                "oci",
                "--timestamp",
                str(MTIME),
                "--build-arg",
                epoch,
                "--platform",
                platform,
            ),
            *("--pull-never" if backend == "buildah" else "--pull=missing", "--layers=false", *secret, *extra),
            *("--tag", name, "--file", file, str(context)),
        ]
        return [build, [backend, "push", "--quiet", name, f"oci:{layout}:{name.rpartition(':')[2]}"]]
    assert backend == "buildx"
    output = f"type=oci,tar=false,dest={layout},rewrite-timestamp=true"
    return [
        [
            *("docker", "buildx", "build", "--provenance=false", "--sbom=false", "--platform", platform),
            *("--build-arg", epoch, "--output", output, "--tag", name, *secret, *extra, "--file", file, str(context)),
        ]
    ]


def run(command: list[str], environment: Mapping[str, str], log: Path) -> None:
    """Run one command, its output to ``log``.  Raises :class:`Refused` with its last lines, without credentials."""
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        raise Refused(
            f"there is no {command[0]} on this machine",
            reason="backend",
            hint="choose another --backend, or install it",
        )
    with log.open("ab") as stream:
        done = subprocess.run(
            [program, *command[1:]],
            env={**environment, "SOURCE_DATE_EPOCH": str(MTIME)},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()][-12:]
        raise Refused(
            f"{command[0]} {command[1]} failed ({done.returncode}):\n"
            + "\n".join(f"  {_CREDENTIALS.sub(r'://', line)[:300]}" for line in lines),
            reason="backend",
        )


def push(layout: Path, reference: str, environment: Mapping[str, str], log: Path, plain: bool) -> None:
    """Copy the image of ``layout`` to a registry with skopeo, whose own configuration has the credentials."""
    command = ["skopeo", "copy", "--preserve-digests"]
    if plain:
        command.append("--dest-tls-verify=false")
    run([*command, f"oci:{layout}", f"docker://{reference}"], environment, log)


def resolve(reference: str, environment: Mapping[str, str]) -> str:
    """The digest that a registry has for ``NAME:TAG``, asked through skopeo.  Raises :class:`Refused`."""
    program = shutil.which("skopeo", path=environment.get("PATH"))
    if program is None:
        raise Refused(
            "there is no skopeo, which asks a registry for a digest",
            reason="backend",
            hint="install it, or write the digest yourself",
        )
    command = [program, "inspect", "--raw", f"docker://{reference}"]
    done = subprocess.run(command, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise Refused(
            f"skopeo could not ask for {reference}: {_CREDENTIALS.sub('://', ' '.join(said))[:300]}", reason="backend"
        )
    try:
        json.loads(done.stdout)
    except ValueError as error:
        raise Refused(f"the registry's answer for {reference} is no manifest", reason="backend") from error
    import hashlib

    return f"sha256:{hashlib.sha256(done.stdout).hexdigest()}"
