"""An upstream repository of our own, its history, and a project whose distribution is its package as released."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from demo import Demo, record_row
from workspace import USER

CART = b'''"""What a customer is about to buy."""


class Cart:
    def __init__(self):
        self.lines = []

    def add(self, name, price):
        self.lines.append((name, price))
        return self

    def total(self):
        return sum(price for _, price in self.lines)


def empty(cart):
    return not cart.lines
'''
FILES: dict[str, bytes] = {
    "demo/__init__.py": b"",
    "demo/cart.py": CART,
    "demo/data/menu.txt": b"".join(b"dish %d\n" % n for n in range(1, 30)),
    "demo/data/old name.txt": b"".join(b"row %d\n" % n for n in range(1, 12)),
    "demo/data/caf\u00e9.txt": "un caf\u00e9\ndeux caf\u00e9s\ntrois\n".encode(),
    "demo/data/latin.txt": b"\xfcber\nalles\nin der Welt\n",
    "demo/data/windows.txt": b"first\r\nsecond\r\nthird\r\n",
    "demo/run.sh": b"#!/bin/sh\nexit 0\n",
    "tests/test_cart.py": b"def test():\n    pass\n",
    "README": b"A shop.\n",
    "logo.bin": b"\0\1\2",
}


@dataclass
class Upstream:
    """The repository at ``folder``; its first commit is the release."""

    folder: Path

    def git(self, *words: str, stdin: bytes | None = None, **env: str) -> bytes:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**os.environ, **USER, **env},
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, path: str, data: bytes) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(data)

    def edit(self, path: str, old: bytes, new: bytes) -> None:
        data = (self.folder / path).read_bytes()
        assert data.count(old) == 1
        self.write(path, data.replace(old, new))

    def commit(self, message: str, *options: str, **env: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, *options, **env)

    def package(self, commit: str = "HEAD") -> dict[str, tuple[bool, bytes]]:
        """The package as ``commit`` has it: path to executable bit and content."""
        found = {}
        for line in self.git("ls-tree", "-r", "-z", commit, "demo/").split(b"\0"):
            if line:
                meta, _, name = line.partition(b"\t")
                mode, _, blob = meta.split(b" ")
                path = name.decode().removeprefix("demo/")
                found[path] = (mode == b"100755", self.git("cat-file", "blob", blob.decode()))
        return found


def make(folder: Path) -> Upstream:
    made = Upstream(folder)
    for path, data in FILES.items():
        made.write(path, data)
    made.git("init", "-q")
    made.git("config", "core.autocrlf", "false")
    made.commit("Release 1.0")
    return made


def install(demo: Demo, upstream: Upstream) -> None:
    """Make the distribution of ``demo`` the package as released, and its series empty."""
    for path in sorted((demo.site / "demo").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    rows = []
    for path, (executable, data) in upstream.package("HEAD").items():
        target = demo.site / "demo" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755 if executable else 0o644)
        rows.append(record_row(f"demo/{path}", data))
    metadata = (demo.site / "demo-1.0.dist-info/METADATA").read_bytes()
    rows += [record_row("demo-1.0.dist-info/METADATA", metadata), "demo-1.0.dist-info/RECORD,,"]
    (demo.site / "demo-1.0.dist-info/RECORD").write_text("\n".join(rows) + "\n")
    for path in demo.patches.iterdir():
        path.unlink()
    demo.write_patches()
    assert demo.run("lock").status == 0
    assert demo.run("table", tree=False).status == 0


def installed(demo: Demo) -> dict[str, tuple[bool, bytes]]:
    """The package as it is installed now."""
    base = demo.site / "demo"
    found = {}
    for path in base.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            found[path.relative_to(base).as_posix()] = (bool(path.stat().st_mode & 0o100), path.read_bytes())
    return found
