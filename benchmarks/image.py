"""Times the native image of the flagship series: ``python benchmarks/image.py [RUNS]``.

The base is made up: the pinned CUDA wheel as pip installs it, and an interpreter that is none, in one layer.  Printed: the first
build, which reads the base; builds after one patch was edited, whole processes, median and spread; the sizes of the layers.
Needs the pinned wheel, which it fetches through pip, and git.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("image", "cli", "buildimage")]
EDITED = "patches/vllm-0.31.0/serve-404-served-names.patch"


def build(project: Path, base: Path) -> tuple[float, dict[str, int]]:
    """Seconds of the whole process, and the size of each layer by what owns it."""
    command = [
        sys.executable,
        "-m",
        "patchforge",
        "build-image",
        "--flavor",
        "cuda",
        "--backend",
        "oci",
        "--allow-dirty",
    ]
    command += ["--base", str(base), "--format", "json", "--project", str(project)]
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)
    took = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return took, {layer["owner"]: layer["size"] for layer in json.loads(done.stdout)["layers"]}


def main(runs: int) -> None:
    from builders import own_project
    from stubs import Layout, installed_tar

    from patchforge.cli.session import cache_directory
    from patchforge.releases.cache import fetch
    from patchforge.series.project import find_project

    pin = find_project(ROOT).pin(None)
    flavor = pin.flavor("cuda")
    wheel = fetch(pin, flavor, flavor.wheels[0], cache_directory())
    with tempfile.TemporaryDirectory() as folder:
        base, project = Path(folder) / "base", Path(folder) / "project"
        Layout(base).image([installed_tar(wheel, "opt/engine/lib/python3.12/site-packages", "python3.12")])
        own_project(project, "cuda", base)
        first, sizes = build(project, base)
        print(f"first build, {sizes['base'] / 1e6:.0f} MB of base to read: {first:.1f} s")
        patch = project / EDITED
        text, samples = patch.read_text(), []
        for number in range(runs):
            patch.write_text(text.replace("Valid aliases: ", f"Aliases {number}: "))
            lock = [sys.executable, "-m", "patchforge", "lock", "--fetch", "--project", str(project)]
            subprocess.run(lock, check=True, capture_output=True)
            took, sizes = build(project, base)
            samples.append(took)
        shutil.rmtree(project)
    print(f"after an edit: {statistics.median(samples):.2f} s [{min(samples):.2f} - {max(samples):.2f}], {runs} runs")
    for owner in ("patches", "project", "patchforge"):
        print(f"layer {owner}: {sizes[owner]:,} bytes")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
