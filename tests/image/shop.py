"""A project with an image: the demo series, a tiny wheel, a base that has it installed, all in a git repository."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo import CORE, TEXT, Demo, Outcome, record_row
from stubs import Layout, folder, installed_tar, member, tar_of

SITE = "opt/engine/lib/python3.12/site-packages"
NEEDS = ("tiny>=1",)
OLD = b"OLD = 1\n"

DROP = b"""\
The old module goes.

Kind: fix
What: the old module is gone
Upstream: none (found here)
Cut-against: demo 1.0
Retires-when: never

diff --git a/gone/old.py b/gone/old.py
deleted file mode 100644
--- a/gone/old.py
+++ /dev/null
@@ -1 +0,0 @@
-OLD = 1
"""


def make_wheel(path: Path, name: str = "demo", version: str = "1.0", files: dict[str, bytes] | None = None) -> str:
    """Write a wheel; return its SHA-256."""
    if files is None:
        files = {
            "demo/__init__.py": b"",
            "demo/core.py": CORE,
            "demo/data/text.txt": TEXT,
            "demo/gone/old.py": OLD,
            "demo/run.sh": b"#!/bin/sh\n",
        }
    info = f"{name}-{version}.dist-info"
    files = {**files, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()}
    rows = [record_row(p, d) for p, d in files.items()] + [f"{info}/RECORD,,"]
    files[f"{info}/RECORD"] = ("\n".join(rows) + "\n").encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for entry, data in files.items():
            place = zipfile.ZipInfo(entry)
            place.external_attr = (0o100755 if entry.endswith(".sh") else 0o100644) << 16
            archive.writestr(place, data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed.getvalue())
    return hashlib.sha256(packed.getvalue()).hexdigest()


def pyc(module: str) -> str:
    head, _, name = module.rpartition("/")
    return f"{SITE}/{head}/__pycache__/{name.removesuffix('.py')}.cpython-312.pyc"


@dataclass
class Shop:
    """The demo project grown to one that builds images.  ``base`` is the layout its pin names."""

    demo: Demo
    cache: Path
    base: Path
    wheel: Path
    options: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.demo.root

    @property
    def pin(self) -> Path:
        return self.demo.series / "pin.toml"

    @property
    def out(self) -> Path:
        return self.root / "build/image/demo-1.0-default"

    def run(self, *words: str) -> Outcome:
        return self.demo.run(*words, tree=False)

    def build(self, *words: str) -> Outcome:
        return self.run("build-image", "--backend", "oci", "--base", str(self.base), "--format", "json", *words)

    def git(self, *words: str) -> None:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(self.root), *words]
        subprocess.run(command, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", "x")

    def edit_pin(self, old: str, new: str) -> None:
        text = self.pin.read_text()
        assert old in text
        self.pin.write_text(text.replace(old, new))

    def rebase(self, tars: list[bytes], **more: Any) -> str:
        """Another base, pinned and committed."""
        import shutil

        shutil.rmtree(self.base)
        old = self.pin.read_text().partition("@sha256:")[2][:64]
        digest = Layout(self.base).image(tars, **more)
        self.edit_pin(old, digest.removeprefix("sha256:"))
        self.commit()
        return digest

    def tars(self) -> list[bytes]:
        """The layers of the usual base: system, installation with bytecode, and a layer that adds and hides files."""
        system = [folder("etc"), member("etc/os-release", b"NAME=stub\n"), member("etc/passing", b"x")]
        compiled = [member(pyc(m), b"bytecode") for m in ("demo/core.py", "demo/__init__.py", "demo/gone/old.py")]
        top = [folder("etc"), member("etc/.wh.passing"), *compiled]
        return [tar_of(system), installed_tar(self.wheel, SITE, "python3.12", owner=7), tar_of(top)]


def lock_text(pin: Path, name: str, rows: dict[str, tuple[str, list[str]]], needs: tuple[str, ...]) -> str:
    """A requirements lock as ``lock --image`` writes it."""
    from patchforge.image.requirements import head
    from patchforge.series.pin import read_pin

    image = read_pin(pin, name).images[0]
    lines = (
        f"{n}=={v} \\\n" + " \\\n".join(f"    --hash=sha256:{h}" for h in hashes) + "\n"
        for n, (v, hashes) in rows.items()
    )
    return head(image, needs) + "".join(lines)


def layer_of(layout: Path, number: int) -> tuple[list[tarfile.TarInfo], Callable[[str], bytes]]:
    """The members of a layer of the only image in ``layout``, and a function that reads one."""
    index = json.loads((layout / "index.json").read_text())
    blobs = layout / "blobs/sha256"
    manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_text())
    archive = tarfile.open(blobs / manifest["layers"][number]["digest"][7:])  # noqa: SIM115

    def read(name: str) -> bytes:
        stream = archive.extractfile(name)
        assert stream is not None
        return stream.read()

    return archive.getmembers(), read


def config_of(layout: Path) -> dict[str, Any]:
    index = json.loads((layout / "index.json").read_text())
    blobs = layout / "blobs/sha256"
    manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_text())
    found: dict[str, Any] = json.loads((blobs / manifest["config"]["digest"][7:]).read_text())
    return found
