"""What the machine has, as far as it can be told without importing a GPU library; ``None`` for what cannot."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Machine:
    """``gpus``: how many may be used; ``sm`` their lowest compute capability times ten; ``gpu_bytes`` the smallest memory.

    ``gpu_used`` is the most that is in use on one of them, in bytes; ``shm_bytes`` the free space of /dev/shm.
    """

    gpus: int | None = None
    sm: int | None = None
    gpu_bytes: int | None = None
    shm_bytes: int | None = None
    wsl2: bool = False
    gpu_used: int | None = None

    def facts(self) -> dict[str, Any]:
        """The names conditions use; sizes in GiB beside bytes."""
        return {
            "gpus": self.gpus,
            "sm": self.sm,
            "gpu_bytes": self.gpu_bytes,
            "gpu_gib": None if self.gpu_bytes is None else self.gpu_bytes / _GIB,
            "gpu_used_gib": None if self.gpu_used is None else self.gpu_used / _GIB,
            "shm_gib": None if self.shm_bytes is None else self.shm_bytes / _GIB,
            "wsl2": self.wsl2,
        }


def look(environ: Mapping[str, str], root: Path = Path("/")) -> Machine:
    """Look at the machine below ``root`` (the file system as it is, but for tests)."""
    rows = _nvidia(environ)
    nodes = _device_nodes(root)
    visible = _visible(environ.get("CUDA_VISIBLE_DEVICES"))
    if rows is not None and visible is not None and all(entry.isdigit() for entry in visible):
        rows = [rows[int(entry)] for entry in visible if int(entry) < len(rows)]
    have = len(rows) if rows is not None else nodes
    gpus = have if visible is None or have is None else min(have, len(visible))
    return Machine(
        gpus,
        min(row[0] for row in rows) if rows else None,
        min(row[1] for row in rows) if rows else None,
        _free(root / "dev/shm"),
        _wsl2(root),
        max(row[2] for row in rows) if rows else None,
    )


def _visible(text: str | None) -> list[str] | None:
    """The entries of ``CUDA_VISIBLE_DEVICES``; CUDA stops at the first that is negative."""
    if text is None:
        return None
    found: list[str] = []
    for entry in text.split(","):
        if not entry.strip() or entry.strip().startswith("-"):
            break
        found.append(entry.strip())
    return found


def _nvidia(environ: Mapping[str, str]) -> list[tuple[int, int, int]] | None:
    """Compute capability, bytes and used bytes of each GPU, as the driver's own tool says."""
    words = ["nvidia-smi", "--query-gpu=compute_cap,memory.total,memory.used", "--format=csv,noheader,nounits"]
    clean = {key: environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in environ}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL, env=clean
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = re.findall(r"^\s*(\d+)\.(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*$", done.stdout, re.MULTILINE)
    return [(int(a) * 10 + int(b), int(size) << 20, int(used) << 20) for a, b, size, used in found] or None


def _device_nodes(root: Path) -> int | None:
    try:
        return len([name for name in os.listdir(root / "dev") if re.fullmatch(r"nvidia[0-9]+", name)])
    except OSError:
        return None


def _free(path: Path) -> int | None:
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _wsl2(root: Path) -> bool:
    try:
        return "microsoft" in (root / "proc/version").read_text(errors="replace").lower()
    except OSError:
        return False
