"""Where the verify attention's time goes: its kernel over bfloat16 with parts left out, one beside the other on an H200.

    python benchmarks/gpu/verify_variants.py --tree PATCHED --libraries DIRECTORY [--build] > variants.md

With ``--build`` nvcc makes a library of each variant in DIRECTORY, which needs no card, and nothing is timed. A variant computes
nothing of use; what it leaves out is only what its name says. The operators of each are in a namespace of their own.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "gpu"), str(Path(__file__).parent)]

SOURCES = Path("vllm/v1/attention/ops/spec_decode_attn_cuda")
KERNEL = "verify_attention.cuh"
QUERIES, CONTEXTS = (2, 5, 16), (1536, 8192, 25600, 32768)

# The condition is false whenever the kernel runs, which the compiler does not know: what the loop made is still needed.
NO_END = ("  const int64_t stride = static_cast<int64_t>(p.kv_heads)", "  if (sum[0] >= 0.0f) return;\n")
NO_PRODUCTS = (
    "    float score[32];\n    barrier_wait(full(k_stage), turn / L::STAGES & 1);\n",
    "    for (int half = 0; half < 2; ++half) {\n"
    "      const int stage = (turn + half) % L::STAGES;\n"
    "      barrier_wait(full(stage), (turn + half) / L::STAGES & 1);\n"
    "      __syncwarp();\n"
    "      if (lane == 0) barrier_arrive(empty(stage));\n"
    "    }\n"
    "    if (p.scale_log2 > 0.0f) continue;\n",
)
NO_LOOP = ("  __syncthreads();  // the barriers exist\n", "  if (p.scale_log2 > 0.0f) tiles = 0;\n")
SEGMENT_ALONE = ("  __syncthreads();  // the barriers exist\n", "  if (p.scale_log2 > 0.0f) return;\n")
NOTHING = ("  extern __shared__ unsigned char unaligned[];\n", "  if (p.scale_log2 > 0.0f) return;\n")

# What is put before a line of the kernel, which is there once.
VARIANTS: dict[str, list[tuple[str, str]]] = {
    "the whole kernel": [],
    "nothing after the loop over the cache": [NO_END],
    "copies into shared memory, no products": [NO_PRODUCTS],
    "the same, and nothing after the loop": [NO_PRODUCTS, NO_END],
    "no loop over the cache": [NO_LOOP],
    "lengths read and the segment found, then out": [SEGMENT_ALONE],
    "out at once": [NOTHING],
}


def namespace(number: int) -> str:
    return f"verify_variant_{number}"


def variant(source: str, edits: list[tuple[str, str]]) -> str:
    """The kernel's source with something put before a line, or a ValueError where that line is not there once."""
    for line, before in edits:
        if source.count(line) != 1:
            raise ValueError(f"{KERNEL} does not have once: {line.strip()}")
        source = source.replace(line, before + line)
    return source.replace("  const int tiles = ", "  int tiles = ")


def build(tree: Path, directory: Path) -> None:
    """A library of each variant in ``directory``, of the sources of ``tree``."""
    from alone import load_library_module

    library = load_library_module(tree)
    directory.mkdir(parents=True, exist_ok=True)

    def one(number: int, edits: list[tuple[str, str]]) -> None:
        with tempfile.TemporaryDirectory() as work:
            sources = Path(work)
            for path in (tree / SOURCES).iterdir():
                if path.suffix in (".cu", ".cuh"):
                    text = path.read_text()
                    text = variant(text, edits) if path.name == KERNEL else text
                    (sources / path.name).write_text(
                        re.sub(r"\bverify_attention\b(?!\.cuh|: )", namespace(number), text)
                    )
            made = sources / "made.so"
            command = [word.replace(str(library.SOURCES), work) for word in library.command(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
            shutil.copy(made, directory / f"{namespace(number)}.so")

    with ThreadPoolExecutor() as pool:
        list(pool.map(one, range(len(VARIANTS)), VARIANTS.values()))


def measure(tree: Path, directory: Path) -> dict[str, list[Any]]:
    """Microseconds a launch of each variant, for each context and number of query tokens."""
    import torch
    import verify_attention as bench
    from alone import load

    ops = load(tree, directory / f"{namespace(0)}.so")
    for number in range(1, len(VARIANTS)):
        torch.ops.load_library(str(directory / f"{namespace(number)}.so"))
    sms, device = torch.cuda.get_device_properties(0).multi_processor_count, torch.device("cuda")
    made = ops.CudaVerifyAttention(
        bench.HEADS, bench.KV_HEADS, bench.DIM, device, sms, torch.cuda.get_device_capability()
    )
    rows: dict[str, list[Any]] = {name: [] for name in VARIANTS}
    rows["roofline"] = []
    rate = bench.copy_rate()
    for context in CONTEXTS:
        for queries in QUERIES:
            x = bench.Inputs(1, context, queries)
            rows["roofline"].append(x.bytes / rate / 1e6)
            for number, name in enumerate(VARIANTS):
                op = getattr(torch.ops, namespace(number)).attend

                def launch(i: int, op: Any = op, x: Any = x, queries: int = queries) -> None:
                    buffers = (x.out[i], made.part, made.limits)
                    op(*buffers, *x.tensors(i), queries, sms // bench.KV_HEADS, 4, bench.DIM**-0.5)

                rows[name].append(bench.time_graph(launch, x.sets)[0])
                made.part.fill_(-1)
                made.limits.fill_(-1)
    return rows


def report(rows: dict[str, list[float]]) -> str:
    lines = ["| what is left | " + " | ".join(f"{context:,}" for context in CONTEXTS) + " |"]
    lines.append("| --- |" + " ---: |" * len(CONTEXTS))
    for name, times in rows.items():
        cells = [times[at : at + len(QUERIES)] for at in range(0, len(times), len(QUERIES))]
        lines.append(f"| {name} | " + " | ".join(", ".join(f"{t:.1f}" for t in cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tree", type=Path, required=True, help="holds vllm/, patched")
    parser.add_argument("--libraries", type=Path, required=True, help="where the variants' libraries are, or are put")
    parser.add_argument("--build", action="store_true", help="build them and time nothing")
    given = parser.parse_args()
    if given.build:
        build(given.tree, given.libraries)
    else:
        print(report(measure(given.tree, given.libraries)), end="")


if __name__ == "__main__":
    main()
