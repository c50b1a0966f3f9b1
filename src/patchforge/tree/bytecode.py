"""Bytecode of changed modules: a stale ``.pyc`` would be run instead of the patched source."""

from __future__ import annotations

import os

from patchforge.tree.root import Root


def stale(root: Root, path: str) -> list[str]:
    """The ``.pyc`` files, of every tag and optimisation level, that belong to the module file ``path``."""
    if not path.endswith(".py"):
        return []
    folder, _, name = path.rpartition("/")
    stem = name[:-3]
    prefix = f"{folder}/" if folder else ""
    found = []
    cache = root.directory(f"{prefix}__pycache__")
    if cache is not None:
        found = [
            f"{prefix}__pycache__/{entry}"
            for entry in os.listdir(cache)
            if entry.endswith(".pyc") and entry.rsplit(".", 1)[0].rsplit(".opt-", 1)[0].rsplit(".", 1)[0] == stem
        ]
    found.append(f"{prefix}{stem}.pyc")
    return sorted(entry for entry in found if root.is_file(entry))


def write(root: Root, paths: list[str], python: str | None) -> None:
    """Compile the modules ``paths`` with the interpreter that will import them; hash-checked, so no time is recorded."""
    import subprocess
    import sys

    modules = [str(root.base / path) for path in paths if path.endswith(".py")]
    if modules:
        # -I: neither the environment nor the current directory may choose what the interpreter imports; failures are the
        # caller's next import's to say.
        command = [python or sys.executable, "-I", "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
        subprocess.run([*command, *modules], check=False, stdin=subprocess.DEVNULL, capture_output=True)
