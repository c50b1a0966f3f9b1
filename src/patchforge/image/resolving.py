"""Writing requirement locks with uv, a program that resolves for another Python and platform than this one's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from patchforge.errors import Refused
from patchforge.image.requirements import head, parse_requirements
from patchforge.series.imagepin import ImagePin

_MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_ADDRESS = re.compile(r"(https?://)[^/\s]+")


def resolve(image: ImagePin, needs: tuple[str, ...], environment: Mapping[str, str]) -> bytes:
    """The lock of ``needs`` for the image's Python and platform.  Raises :class:`Refused` with what uv said.

    ``environment`` is the process's; uv gets from it, and from pip's own configuration, where to look.
    """
    machine = _MACHINES.get(image.platform)
    if machine is None:
        raise Refused(
            f"cannot resolve for {image.platform}", reason="platform-mismatch", hint=f"known: {', '.join(_MACHINES)}"
        )
    platform = f"{machine}-manylinux_{image.glibc.replace('.', '_')}"
    uv = _program(environment)
    with tempfile.TemporaryDirectory(prefix="patchforge-") as folder:
        source, target = Path(folder) / "in.txt", Path(folder) / "out.txt"
        source.write_text("".join(f"{need}\n" for need in needs))
        command = [
            *(uv, "pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate"),
            *("--python-version", image.minor, "--python-platform", platform, "--index-strategy", "unsafe-best-match"),
            *("--no-emit-index-url", "--no-emit-find-links", "--only-binary", ":all:"),
            *(word for name in image.omit for word in ("--no-emit-package", name)),
            *("--output-file", str(target), str(source)),
        ]
        done = subprocess.run(
            command,
            env={**environment, **pip_places(environment)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = _ADDRESS.sub(r"\1…", " ".join(done.stderr.split()))
            raise Refused(f"uv could not resolve {', '.join(needs)}: {said[:600]}", reason="lock-tool")
        text = head(image, needs) + target.read_text()
    parse_requirements(text, "the new lock", "report it: uv wrote what this cannot read")
    return text.encode()


def _program(environment: Mapping[str, str]) -> str:
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("uv", path=environment.get("PATH"))
    if found is None:
        raise Refused(
            "there is no uv, the program that resolves requirement locks",
            reason="lock-tool",
            hint="'pip install uv' in patchforge's environment",
        )
    return found


def pip_places(environment: Mapping[str, str]) -> dict[str, str]:
    """Where pip is configured to look, in the variables uv reads; what those already say comes first."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    done = subprocess.run(
        command, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        name = key.strip().rpartition(".")[2]
        # Listed from the weakest place to the strongest, which replaces what others said.
        found[name] = value.strip().strip("'\"").replace("\\n", " ").split()
    names = {
        "index-url": ("UV_DEFAULT_INDEX", " "),
        "extra-index-url": ("UV_INDEX", " "),
        "find-links": ("UV_FIND_LINKS", ","),
    }
    # pip trusts what the system trusts; so should uv, which brings its own list.
    places = {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}
    places |= {variable: sign.join(found[name]) for name, (variable, sign) in names.items() if name in found}
    if "cert" in found:
        places["SSL_CERT_FILE"] = " ".join(found["cert"])
    return {variable: place for variable, place in places.items() if variable not in environment}
