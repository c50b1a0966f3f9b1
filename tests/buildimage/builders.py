"""What the tests of real builders share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]


def lacking(what: str) -> NoReturn:
    """Skip the test and say why; where ``PATCHFORGE_IMAGE_TOOLS`` is ``required``, as in .ci/run, fail it."""
    if os.environ.get("PATCHFORGE_IMAGE_TOOLS") == "required":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            lacking(f"{program} is not installed")


def patchforge(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed patchforge; fail with what it said."""
    done = subprocess.run([sys.executable, "-m", "patchforge", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def git(project: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(project), *words]
    subprocess.run(command, check=True, capture_output=True)


def own_project(target: Path, flavor: str, base: Path) -> Path:
    """A copy of this repository's project that is pinned to ``base`` and committed."""
    pin = "vllm-0.31.0"
    for part in (f"series/{pin}", f"patches/{pin}"):
        shutil.copytree(ROOT / part, target / part)
    shutil.copy(ROOT / "PATCHES.md", target)
    (target / ".gitignore").write_text("/build/\n")
    patchforge("lock", "--image", "--flavor", flavor, "--base", str(base), "--project", str(target))
    git(target, "init", "--quiet")
    git(target, "add", "-A")
    git(target, "commit", "--quiet", "-m", "pinned to a base of the tests")
    return target


class Containers:
    """Working containers, removed at the end."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def start(self, image: str) -> str:
        command = ["buildah", "from", "--pull-never", image]
        name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        self.names.append(name)
        return name

    def run(self, name: str, *words: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        own = [] if user is None else ["--user", user]
        return subprocess.run(["buildah", "run", *own, name, "--", *words], capture_output=True, text=True, check=False)
