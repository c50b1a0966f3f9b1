"""A small project with an installed distribution, and a way to run the command line in it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchforge import cli

CORE = b"""import os


class Engine:
    def start(self):
        self.running = True
        return self

    def stop(self):
        self.running = False
        return self


class Worker:
    def start(self):
        self.busy = True
        return self
"""

TEXT = b"one\ntwo\nthree\nfour\nfive\n"

LOG = b"""\
The engine says nothing when it starts.

Kind: feature
What: the engine counts its starts
Upstream: demo #12 (open)
Cut-against: demo 1.0
Retires-when: carries #12
Probe: source: core.py :: Engine.start contains starts
Env: DEMO_LOG (bool, 0)
Tests: tests/test_log.py

diff --git a/core.py b/core.py
--- a/core.py
+++ b/core.py
@@ -4,6 +4,7 @@ import os
 class Engine:
     def start(self):
         self.running = True
+        self.starts = 1
         return self
 
     def stop(self):
"""

NAMES = b"""\
Numbers are names.

Kind: fix
What: two is spelt as it should be
Upstream: none (found here)
Cut-against: demo 1.0
Retires-when: version >=1.1

diff --git a/data/text.txt b/data/text.txt
--- a/data/text.txt
+++ b/data/text.txt
@@ -1,5 +1,5 @@
 one
-two
+zwei
 three
 four
 five
diff --git a/extra.py b/extra.py
new file mode 100644
--- /dev/null
+++ b/extra.py
@@ -0,0 +1 @@
+NEW = True
"""


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Demo:
    """The project at ``root`` and the site-packages at ``site``."""

    root: Path
    site: Path
    capture: Callable[[], tuple[str, str]]

    @property
    def patches(self) -> Path:
        return self.root / "patches/demo-1.0"

    @property
    def series(self) -> Path:
        return self.root / "series/demo-1.0"

    def run(self, *arguments: str, tree: bool = True) -> Outcome:
        words = [arguments[0], "--project", str(self.root)]
        if tree:
            words += ["--tree", str(self.site)]
        self.capture()
        status = cli.run([*words, *arguments[1:]])
        return Outcome(status, *self.capture())

    def write_patches(self, **patches: bytes) -> None:
        for name, data in patches.items():
            (self.patches / f"{name}.patch").write_bytes(data)
        (self.series / "series").write_text("".join(f"{name}.patch\n" for name in patches))

    def snapshot(self) -> dict[str, tuple[int, bytes]]:
        return {
            p.relative_to(self.site).as_posix(): (p.stat().st_mode, p.read_bytes())
            for p in sorted(self.site.rglob("*"))
            if p.is_file()
        }


def record_row(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}"
