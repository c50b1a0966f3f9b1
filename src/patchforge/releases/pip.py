"""Running pip: the one way to an index, so that its configuration, mirrors, certificates and credentials apply."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import InputError, Refused
from patchforge.series.pin import Wheel, normalize

_CREDENTIALS = re.compile(r"(https?://)[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class Found:
    """A release as the index describes it; ``url`` is its wheel's, without credentials."""

    name: str
    version: str
    wheel: Wheel
    requires_python: str | None
    url: str


def run_pip(arguments: list[str], what: str) -> str:
    """Run pip and return what it printed; raise :class:`Refused` with what it said when it fails to do ``what``."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Refused(f"cannot start pip: {error}", reason="pip") from error
    if done.returncode:
        raise Refused(f"pip could not {what}: {_last_error(done.stderr)}", reason="pip", hint=_hint(done.stderr))
    return done.stdout


def _last_error(text: str) -> str:
    """What pip said, without credentials."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines[-1:]
    return _CREDENTIALS.sub(r"\1", errors[-1] if errors else "no message")


def _hint(text: str) -> str:
    if "No module named pip" in text:
        return "install pip in patchforge's own environment"
    if "No matching distribution" in text or "Could not find a version" in text:
        return "does the index pip is configured with have it? 'pip download NAME==VERSION' shows what pip sees"
    return "patchforge asks pip, with pip's own configuration: 'pip config list' shows it"


def download(distribution: str, version: str, wheel: Wheel, directory: Path) -> Path:
    """Let pip download ``wheel`` into ``directory`` and check its hash; return the file.  Raises :class:`Refused`."""
    python, abi, platform = wheel.tags
    arguments = [
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--dest",
        str(directory),
    ]
    for tag in platform.split("."):
        arguments += ["--platform", tag]
    for tag in abi.split("."):
        arguments += ["--abi", tag]
    version_tag = re.match(r"(cp|py)(\d)(\d*)", python)
    if version_tag is not None and version_tag.group(1) == "cp":
        # abi3 wheels name the oldest Python they run on; any newer one may ask for them.
        arguments += ["--implementation", "cp", "--python-version", f"{version_tag[2]}.{_newest(abi, version_tag[3])}"]
    with tempfile.TemporaryDirectory(prefix="patchforge-") as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(f"{distribution}=={version} --hash=sha256:{wheel.sha256}\n")
        run_pip([*arguments, "--requirement", str(requirements)], f"download {distribution}=={version}")
    file = directory / wheel.file
    if not file.is_file():
        names = ", ".join(sorted(p.name for p in directory.iterdir())) or "nothing"
        raise Refused(f"pip brought {names} instead of {wheel.file}", reason="pip")
    return file


def _newest(abi: str, minor: str) -> str:
    """The minor version to ask pip for: a wheel of the stable ABI may demand a newer Python than its tag says."""
    return str(max(int(minor or 0), sys.version_info.minor)) if "abi3" in abi else (minor or "0")


def find(name: str, version: str) -> Found:
    """Ask the index, through pip, for the wheel of ``name==version`` that suits this interpreter, without downloading it."""
    with tempfile.TemporaryDirectory(prefix="patchforge-") as folder:
        report = Path(folder) / "report.json"
        run_pip(
            [
                *("install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"),
                *("--report", str(report), f"{name}=={version}"),
            ],
            f"find a wheel of {name}=={version}",
        )
        data = json.loads(report.read_bytes())
    item = data["install"][0]
    file = item["download_info"]["url"].rpartition("/")[2].partition("#")[0]
    from urllib.parse import unquote

    sha = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
    metadata = item["metadata"]
    if normalize(metadata["name"]) != normalize(name) or metadata["version"] != version:
        raise InputError(f"the index has {metadata['name']} {metadata['version']}, not {name}=={version}", reason="pin")
    if sha is None:
        raise Refused("the index gives no sha256 for the wheel", reason="pip", hint="write pin.toml by hand")
    url = _CREDENTIALS.sub(r"\1", item["download_info"]["url"])
    return Found(metadata["name"], version, Wheel(unquote(file), sha), metadata.get("requires_python"), url)


def listed(name: str) -> list[str]:
    """The versions of ``name`` the index has for this interpreter, as pip lists them."""
    said = run_pip(["index", "versions", name], f"list the versions of {name}")
    match = re.search(r"^Available versions: (.*)$", said, re.MULTILINE)
    if match is None:
        raise Refused(f"pip listed no versions of {name}", reason="pip", hint="name the releases: --against VERSION")
    return [version.strip() for version in match[1].split(",")]
