"""Tiny wheels, and environments to install them in, without any network."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchforge.tree.record import record_hash


def build_wheel(
    folder: Path,
    files: Mapping[str, tuple[bytes, int]],
    name: str = "demo",
    version: str = "1.0",
    tag: str = "py3-none-any",
) -> Path:
    """Write a wheel with ``files`` (path to content and permission bits) into ``folder``; always the same bytes."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    everything = {**files, f"{info}/METADATA": (metadata, 0o644), f"{info}/WHEEL": (wheel, 0o644)}
    rows = "".join(f"{path},{record_hash(data)},{len(data)}\n" for path, (data, _) in everything.items())
    everything[f"{info}/RECORD"] = (f"{rows}{info}/RECORD,,\n".encode(), 0o644)
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, (data, mode) in everything.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data)
    return made


@dataclass(frozen=True)
class Environment:
    """A virtual environment without pip; this interpreter's pip works on it from outside."""

    root: Path

    @classmethod
    def create(cls, root: Path) -> Environment:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
        return cls(root)

    @property
    def python(self) -> str:
        return str(self.root / "bin/python")

    @property
    def site(self) -> Path:
        return next(self.root.glob("lib/python*/site-packages"))

    def pip(self, *arguments: str) -> str:
        """Run pip on this environment; return what it says.  A failure shows all of it."""
        words = ["--python", self.python, "--disable-pip-version-check", "--no-input", *arguments]
        done = subprocess.run(
            [sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False, env=self._clean()
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, wheel: Path, *options: str) -> None:
        """Install a wheel file and nothing else."""
        self.pip("install", "--quiet", "--no-index", "--no-deps", *options, str(wheel))

    def run(self, code: str) -> str:
        """Run ``code`` in the environment's interpreter; return what it prints."""
        done = subprocess.run(
            [self.python, "-c", code], capture_output=True, text=True, check=False, env=self._clean(), cwd=self.root
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _clean(self) -> dict[str, str]:
        return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_"))}
