"""A distribution as an installer leaves it, and series for it, without a package manager."""

from __future__ import annotations

import base64
import hashlib
import py_compile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from patchforge import resources
from patchforge.engine.apply import Applied, ApplyOptions, apply_series
from patchforge.engine.revert import Reverted, revert_installed
from patchforge.series.parsed import Schema
from patchforge.series.project import Series, find_project, load_series
from patchforge.tree.locate import in_directory
from patchforge.tree.target import open_installed
from trees import snapshot

Hook = Callable[[str], None]
SCHEMA = Schema(resources.schema_hash(), resources.schema)
HEADER = """Why.

Kind: local
What: {what} of the demo
Upstream: none
Cut-against: demo 1.0
Retires-when: never

"""
FILES: dict[str, tuple[bytes, int]] = {
    "demo/__init__.py": (b"VERSION = 1\n", 0o644),
    "demo/core.py": (b"".join(b"x%d = %d\n" % (n, n) for n in range(40)), 0o644),
    "demo/old.py": (b"OLD = 1\n", 0o644),
    "demo/sub/only.py": (b"ONLY = 1\n", 0o644),
    "demo/run.sh": (b"#!/bin/sh\nexit 0\n", 0o755),
    "demo/plain.txt": (b"plain\ntext\n", 0o640),
    "demo/moved.txt": (b"to be\nmoved\nsoon\n", 0o644),
}


def patch(what: str, diff: str) -> bytes:
    return (HEADER.format(what=what) + diff).encode()


FIRST = {
    "modify": patch(
        "modify",
        "diff --git a/core.py b/core.py\n--- a/core.py\n+++ b/core.py\n@@ -8,7 +8,7 @@\n x7 = 7\n x8 = 8\n x9 = 9\n-x10 = 10\n+x10 = 99\n"
        " x11 = 11\n x12 = 12\n x13 = 13\n"
        "diff --git a/plain.txt b/plain.txt\n--- a/plain.txt\n+++ b/plain.txt\n@@ -1,2 +1,3 @@\n plain\n+new\n text\n",
    ),
    "create": patch(
        "create",
        "diff --git a/new/deep/made.py b/new/deep/made.py\nnew file mode 100644\n--- /dev/null\n+++ b/new/deep/made.py\n"
        "@@ -0,0 +1 @@\n+MADE = 1\n"
        "diff --git a/tool.sh b/tool.sh\nnew file mode 100755\n--- /dev/null\n+++ b/tool.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n",
    ),
    "delete": patch(
        "delete",
        "diff --git a/old.py b/old.py\ndeleted file mode 100644\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-OLD = 1\n"
        "diff --git a/sub/only.py b/sub/only.py\ndeleted file mode 100644\n--- a/sub/only.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-ONLY = 1\n",
    ),
    "rename": patch(
        "rename",
        "diff --git a/moved.txt b/new/moved.txt\nsimilarity index 60%\nrename from moved.txt\nrename to new/moved.txt\n"
        "--- a/moved.txt\n+++ b/new/moved.txt\n@@ -1,3 +1,3 @@\n to be\n-moved\n+MOVED\n soon\n",
    ),
    "mode": patch("mode", "diff --git a/run.sh b/run.sh\nold mode 100755\nnew mode 100644\n"),
}
SECOND = {
    "modify": FIRST["modify"].replace(b"+x10 = 99", b"+x10 = 77"),
    "other": patch(
        "other",
        "diff --git a/__init__.py b/__init__.py\n--- a/__init__.py\n+++ b/__init__.py\n@@ -1 +1 @@\n-VERSION = 1\n+VERSION = 2\n"
        "diff --git a/other/made.py b/other/made.py\nnew file mode 100644\n--- /dev/null\n+++ b/other/made.py\n"
        "@@ -0,0 +1 @@\n+MADE = 2\n",
    ),
}


def record_row(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}"


@dataclass
class Place:
    """A site-packages with the demo distribution, and a project beside it."""

    base: Path

    @property
    def site(self) -> Path:
        return self.base / "site"

    @property
    def project(self) -> Path:
        return self.base / "project"

    def install(self, bytecode: bool = True) -> None:
        for path, (data, mode) in FILES.items():
            target = self.site / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(mode)
        info = self.site / "demo-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_bytes(b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        rows = [record_row(path, data) for path, (data, _) in FILES.items()]
        rows.append(record_row("demo-1.0.dist-info/METADATA", (info / "METADATA").read_bytes()))
        (info / "RECORD").write_text("\n".join([*rows, "demo-1.0.dist-info/RECORD,,"]) + "\n")
        if bytecode:
            for name in ("core", "old", "sub/only"):
                py_compile.compile(str(self.site / f"demo/{name}.py"))

    def series(self, patches: dict[str, bytes]) -> Series:
        directory, patch_dir = self.project / "series/demo-1.0", self.project / "patches/demo-1.0"
        directory.mkdir(parents=True, exist_ok=True)
        patch_dir.mkdir(parents=True, exist_ok=True)
        (directory / "pin.toml").write_text(
            'schema = 1\ndistribution = "demo"\nversion = "1.0"\nroot = "demo"\n[flavor.default]\nwheel = []\n'
        )
        for name, data in patches.items():
            (patch_dir / f"{name}.patch").write_bytes(data)
        (directory / "series").write_text("".join(f"{name}.patch\n" for name in patches))
        return load_series(find_project(self.project), None)

    def apply(self, patches: dict[str, bytes], hook: Hook | None = None, say: Hook | None = None) -> Applied:
        self.series(patches)
        return self.apply_as_it_is(hook, say)

    def apply_as_it_is(self, hook: Hook | None = None, say: Hook | None = None) -> Applied:
        """Apply the series that was written before."""
        series = load_series(find_project(self.project), None)
        installed = in_directory(self.site, ["demo"], "demo")
        assert installed is not None
        with open_installed(installed, "demo", True, say, hook) as target:
            return apply_series(series, target, SCHEMA, ApplyOptions())

    def revert(self, hook: Hook | None = None) -> Reverted:
        installed = in_directory(self.site, ["demo"], "demo")
        assert installed is not None
        with open_installed(installed, "demo", True, None, hook) as target:
            return revert_installed(target)

    def recover(self, hook: Hook | None = None) -> str | None:
        """Open the tree for writing, which brings an interrupted run to its end; say what that did."""
        installed = in_directory(self.site, ["demo"], "demo")
        assert installed is not None
        with open_installed(installed, "demo", True, None, hook) as target:
            return target.recovered

    def look(self) -> dict[str, tuple[str, int, bytes]]:
        """The tree without bytecode, which may come and go."""
        found = snapshot(self.site)
        return {k: v for k, v in found.items() if "__pycache__" not in k}
