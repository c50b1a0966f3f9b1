"""Times patchforge beside its peers, alternating, in one run: ``python benchmarks/compare.py [RUNS]``.

The peers are a shell loop of GNU patch over the same series, and ``quilt push -a``.  Every run starts from a fresh copy of the
tree, copied before the clock starts.  Printed: median and spread of the wall clock of whole processes, CPU time, and the ratio of
the medians.  The flagship part needs the unpacked wheel in build/ (``patchforge apply --fetch``) and reverts it first.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYTHON = sys.executable
LOOP = 'while read -r p; do patch -p1 -N -s --fuzz=0 --no-backup-if-mismatch -d "$1" -i "$2/$p" || exit 1; done < "$2/series"'


def timed(command: list[str], env: dict[str, str] | None = None, cwd: Path | None = None) -> tuple[float, float]:
    """Wall clock and CPU seconds of one whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    # As an installed tool runs: with its bytecode, which the first run of each command writes.
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env={**clean, **(env or {})}, cwd=cwd, capture_output=True, check=False)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stdout.decode()[-500:]} {done.stderr.decode()[-1500:]}")
    if done.returncode == 1 and "verify" not in command:
        raise SystemExit(f"{command}: {done.stdout.decode()[-500:]} {done.stderr.decode()[-1500:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def show(name: str, samples: list[tuple[float, float]], base: float | None = None) -> float:
    walls, cpus = [w for w, _ in samples], [c for _, c in samples]
    median = statistics.median(walls)
    ratio = f"  {median / base:5.2f}x" if base else ""
    print(
        f"  {name:34} {median * 1000:8.1f} ms  [{min(walls) * 1000:.1f} - {max(walls) * 1000:.1f}]"
        f"  cpu {statistics.median(cpus) * 1000:7.1f} ms{ratio}"
    )
    return median


def series_of(name: str, tree: Path, patches: Path, runs: int, ours: list[str], with_quilt: bool) -> None:
    """Compare on one tree, relative to which the patches are; ``ours`` is the command, its tree last."""
    print(name)
    samples: dict[str, list[tuple[float, float]]] = {"loop": [], "quilt": [], "ours": []}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(runs):
            for tool in ("loop", "ours", "quilt"):
                if tool == "quilt" and (not with_quilt or number >= max(runs // 4, 2)):
                    continue
                copy = Path(scratch) / f"{tool}{number}"
                shutil.copytree(tree, copy)
                inside = next((p for p in [copy / "vllm"] if p.is_dir()), copy)
                if tool == "loop":
                    samples[tool].append(timed(["sh", "-c", LOOP, "sh", str(inside), str(patches)]))
                elif tool == "ours":
                    samples[tool].append(timed([*ours, str(copy)]))
                else:
                    env = {"QUILT_PATCHES": str(patches), "QUILT_PC": ".pc"}
                    samples[tool].append(
                        timed(["quilt", "--quiltrc", "-", "push", "-a", "-q", "--fuzz=0"], env, inside)
                    )
                shutil.rmtree(copy)
    base = show("GNU patch, shell loop", samples["loop"])
    show("patchforge apply", samples["ours"], base)
    if samples["quilt"]:
        quilt = show("quilt push -a", samples["quilt"], base)
        print(f"  patchforge against quilt: {statistics.median(w for w, _ in samples['ours']) / quilt:.3f}x")


def small_commands(runs: int) -> None:
    print("start and checks (whole processes)")
    bare = [timed([PYTHON, "-c", "pass"]) for _ in range(runs)]
    show("python -c pass", bare)
    for words in (["--help"], ["check-table"], ["lint"], ["verify", "--tree", str(ROOT / "build/vllm-0.31.0")]):
        command = [
            PYTHON,
            "-m",
            "patchforge",
            words[0],
            *(["--project", str(ROOT)] if len(words) > 1 or words[0] != "--help" else []),
        ]
        show("patchforge " + words[0], [timed([*command, *words[1:]]) for _ in range(runs)])


def many_files(runs: int, scratch: Path) -> None:
    """``verify`` of a hundred touched files against a lock."""
    sys.path.insert(0, str(ROOT / "tests"))
    from installed import FILES, Place, patch

    place = Place(scratch / "hundred")
    for n in range(100):
        FILES[f"demo/m{n}.py"] = (b"".join(b"x%d = %d\n" % (k, k) for k in range(400)), 0o644)
    place.install(bytecode=False)
    body = "".join(
        f"diff --git a/m{n}.py b/m{n}.py\n--- a/m{n}.py\n+++ b/m{n}.py\n"
        "@@ -10,3 +10,3 @@\n x9 = 9\n-x10 = 10\n+x10 = 11\n x11 = 11\n"
        for n in range(100)
    )
    place.series({"many": patch("many", body)})
    command = [PYTHON, "-m", "patchforge"]
    where = ["--project", str(place.project), "--tree", str(place.site)]
    timed([*command, "lock", *where])
    timed([*command, "apply", *where])
    print("a hundred touched files")
    show("patchforge verify", [timed([*command, "verify", *where]) for _ in range(runs)])
    show("patchforge apply (already applied)", [timed([*command, "apply", *where]) for _ in range(runs)])


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    small_commands(runs)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        many_files(runs, scratch)
        touched = scratch / "flagship"
        sys.path.insert(0, str(ROOT / "src"))
        from patchforge.series.lock import read_lock

        lock = read_lock(ROOT / "series/vllm-0.31.0/lock.toml", "lock.toml")
        wheel = ROOT / "build/vllm-0.31.0"
        if lock is not None and wheel.is_dir():
            timed([PYTHON, "-m", "patchforge", "revert", "--project", str(ROOT), "--tree", str(wheel)])
            for file in lock.files:
                if file.before is not None:
                    (touched / "vllm" / file.path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(wheel / "vllm" / file.path, touched / "vllm" / file.path)
            shutil.copytree(wheel / "vllm-0.31.0.dist-info", touched / "vllm-0.31.0.dist-info")
            flat = scratch / "flat"
            shutil.copytree(ROOT / "patches/vllm-0.31.0", flat)
            shutil.copy(ROOT / "series/vllm-0.31.0/series", flat / "series")
            lines = [x for x in (flat / "series").read_text().splitlines() if x and not x.startswith("#")]
            (flat / "series").write_text("\n".join(lines) + "\n")
            ours = [PYTHON, "-m", "patchforge", "apply", "--project", str(ROOT), "--tree"]
            series_of(f"the flagship series ({len(lines)} patches)", touched, flat, runs, ours, True)
        for patches, files in ((100, 100), (1000, 300)):
            base = scratch / f"synthetic{patches}"
            subprocess.run([PYTHON, str(HERE / "synthetic.py"), str(base), str(patches), str(files)], check=True)
            ours = [PYTHON, "-m", "patchforge", "apply", "--quilt", str(base / "patches"), "--tree"]
            series_of(
                f"a synthetic series of {patches} patches",
                base / "tree",
                base / "patches",
                max(runs // 4, 3),
                ours,
                True,
            )


if __name__ == "__main__":
    main()
