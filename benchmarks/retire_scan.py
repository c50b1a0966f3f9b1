"""How long ``retire-scan`` takes for many patches: ``python benchmarks/retire_scan.py OLD NEW [PATCHES]``.

``OLD`` and ``NEW`` are unpacked vllm packages, the pin's and a later release's.  The flagship's patches are cut into one patch a
file, as many as asked for (50), and judged in bare mode; whole processes, nothing cached.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIN = "vllm-0.31.0"
RUNS = 7


def cut(into: Path, most: int) -> int:
    """Write the series as a quilt directory of patches of one file each."""
    names = []
    for line in (ROOT / "series" / PIN / "series").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        sections = re.split(rb"(?m)^(?=diff --git )", (ROOT / "patches" / PIN / line).read_bytes())
        for section in sections[1:]:
            names.append(f"{len(names):03d}-{line}")
            (into / names[-1]).write_bytes(section)
    (into / "series").write_text("\n".join(names[:most]) + "\n")
    return len(names[:most])


def main() -> None:
    old, new = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as scratch:
        count = cut(Path(scratch), int(sys.argv[3]) if len(sys.argv) > 3 else 50)
        command = [
            sys.executable,
            "-m",
            "patchforge",
            "retire-scan",
            "--quilt",
            scratch,
            "--old",
            old,
            "--new",
            new,
            "-q",
        ]
        taken = []
        for _ in range(RUNS):
            begin, before = time.perf_counter(), os.times()
            subprocess.run(command, check=True, capture_output=True)
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            taken.append((time.perf_counter() - begin, cpu))
    for name, values in zip(("wall clock", "processor"), zip(*taken, strict=True), strict=True):
        print(f"{count} patches, {name}: {statistics.median(values):.2f} s [{min(values):.2f} - {max(values):.2f}]")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
