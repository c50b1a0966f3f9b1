"""What ``vllm-pr40371-prompt-progress`` costs those who do not ask for it: ``python benchmarks/progress.py [ROUNDS]``.

A pristine and a patched server of vLLM's CPU build, side by side, measured in turn by ``vllm bench serve``; the patched one once
more with requests that do ask.  It wants what ``nox -s engine`` makes: the requirements in requirements/engine.txt, and both
trees in PATCHFORGE_PRISTINE_ENGINE and PATCHFORGE_PATCHED_ENGINE.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "tests" / "engine"
sys.path.insert(0, str(ENGINE))

from launching import Launcher, end, until  # noqa: E402

from serving import Server  # noqa: E402

CASES = [("pristine", "pristine", False), ("patched", "patched", False), ("patched, asked", "patched", True)]
LOAD = [
    "--input-len",
    "1000",
    "--output-len",
    "24",
    "--num-prompts",
    "24",
    "--max-concurrency",
    "4",
    "--num-warmups",
    "2",
]
FIGURES = {
    "output_throughput": "tokens/s",
    "median_ttft_ms": "TTFT, ms",
    "median_tpot_ms": "TPOT, ms",
    "cpu": "CPU of the server, s",
}
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(group: int) -> float:
    """What the processes of a group have used, in user and in kernel mode: less at the mercy of a busy machine than a clock."""
    used = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            used += int(fields[11]) + int(fields[12])
    return used / TICKS


def measure(launcher: Launcher, server: Server, folder: Path, asks: bool, seed: int) -> dict[str, float]:
    """One run of ``vllm bench serve``: the figures of its result."""
    folder.mkdir()
    words = ["bench", "serve", "--base-url", server.url, "--model", str(server.model), "--dataset-name", "random"]
    words += [*LOAD, "--seed", str(seed), "--ignore-eos", "--temperature", "0", "--disable-tqdm"]
    words += ["--save-result", "--result-filename", "out.json"]
    if asks:
        words += ["--extra-body", json.dumps({"return_progress": True})]
    assert server.process is not None
    before = cpu_seconds(server.process.pid)
    run = launcher.copy(words, {}, folder, folder / "log")
    until(lambda: run.poll() is not None, 600, "the benchmark does not end")
    end(run)
    assert run.poll() == 0, (folder / "log").read_text()[-3000:]
    result = json.loads((folder / "out.json").read_bytes())
    assert result["failed"] == 0
    result["cpu"] = cpu_seconds(server.process.pid) - before
    return {name: result[name] for name in FIGURES}


def main(rounds: int) -> None:
    """Print medians, spreads, and the median of the ratios to pristine of the same round."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        launchers: dict[str, Launcher] = {}
        servers: dict[str, Server] = {}
        try:
            for tree in ("pristine", "patched"):
                launchers[tree] = Launcher(Path(os.environ[f"PATCHFORGE_{tree.upper()}_ENGINE"]), scratch / tree)
            models = scratch / "models"
            command = [sys.executable, str(ENGINE / "tiny.py"), str(models)]
            subprocess.run(command, env=launchers["pristine"].environment, check=True, capture_output=True)
            for tree, launcher in launchers.items():
                # Two of the three send the same prompts to one server, which shall not know them the second time.
                arguments = ["--no-enable-prefix-caching"]
                servers[tree] = Server(launcher, models / "tiny-dense", scratch / f"server-{tree}", arguments)
                servers[tree].start()
            for server in servers.values():
                server.wait()
            seen: dict[str, list[dict[str, float]]] = {label: [] for label, _, _ in CASES}
            for turn in range(-1, rounds):
                # In another order each time, and with the same prompts for all; the first turn warms up.
                for label, tree, asks in CASES[turn % 3 :] + CASES[: turn % 3]:
                    figures = measure(launchers[tree], servers[tree], scratch / f"{turn}-{label}", asks, turn + 2)
                    if turn >= 0:
                        seen[label].append(figures)
        finally:
            for server in servers.values():
                server.stop()
            for launcher in launchers.values():
                launcher.close()
    print(f"| {rounds} rounds | {' | '.join(f'{unit} | to pristine' for unit in FIGURES.values())} |")
    print(f"| --- |{' ---: |' * (2 * len(FIGURES))}")
    for label, runs in seen.items():
        cells = []
        for figure in FIGURES:
            values = sorted(run[figure] for run in runs)
            ratio = statistics.median(
                run[figure] / was[figure] for run, was in zip(runs, seen["pristine"], strict=True)
            )
            cells += [f"{statistics.median(values):.2f} [{values[0]:.2f} – {values[-1]:.2f}]", f"{ratio:.3f}"]
        print(f"| {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
