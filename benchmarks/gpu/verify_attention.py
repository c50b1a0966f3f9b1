"""The CUDA verify attention beside FlashAttention 3 and the Triton kernel, in one process, on an H200.

    python benchmarks/gpu/verify_attention.py --tree PATCHED --library verify_attention.abi3.so \
        --fa3 vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so --out DIRECTORY [--limit SECONDS]

First tests/gpu's checks, then the timings; DIRECTORY gets ``verify-attention-h200.md`` and ``.json``. FA3 is called as the engine
calls it under CUDA graphs: with the scheduler's metadata made ahead, and at most 32 splits. Past the limit no other shape
is begun; the page has those that were.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "gpu"), str(ROOT / "tests" / "kernels")]

HEADS, KV_HEADS, DIM, PAGE = 24, 4, 256, 16
QUERIES = (2, 5, 8, 10, 11, 16)
CONTEXTS = (1024, 2048, 4096, 8192, 16384, 25600, 32768, 65536, 102400, 131072)
BATCHES = (1, 8, 4, 2, 7, 3, 5, 6)  # what matters most first
TRITON_INT8 = (1024, 8192, 25600, 102400)  # contexts
MAX_ROWS_INT8 = 96
INT8_BYTES = 2 * (DIM + 4)  # of a token and KV head: keys, values, and a scale of each
COLD_BYTES = 400e6  # of caches a graph goes through: the L2 has 60 MB
LAUNCHES, REPEATS = 20, 9

Timing = tuple[float, float, float]  # median, least and most microseconds a launch


def time_graph(launch: Callable[[int], None], sets: int) -> Timing:
    """One launch after another on ``sets`` sets of inputs in turn, in a CUDA graph."""
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for i in range(min(sets, 3)):
            launch(i)
    torch.cuda.synchronize()
    graph, count = torch.cuda.CUDAGraph(), max(sets, LAUNCHES)
    with torch.cuda.graph(graph, stream=stream):
        for i in range(count):
            launch(i % sets)
    times = []
    for turn in range(REPEATS + 2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if turn > 1:
            times.append(begin.elapsed_time(end) * 1000 / count)
    return statistics.median(times), min(times), max(times)


def copy_rate() -> float:
    """Bytes read and written a second by a copy of 2 GiB of noise on the device, in TB/s."""
    a = torch.randint(-128, 127, (2**31,), dtype=torch.int8, device="cuda")
    b = torch.empty_like(a)
    times = []
    for _ in range(12):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        b.copy_(a)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return 2 * 2**31 / statistics.median(times[2:]) / 1e9


class Inputs:
    """``sets`` batches of equal requests on one cache, positions of a page together, as FA3 and the engine have them."""

    def __init__(self, batch: int, context: int, queries: int, *, warm: bool = False) -> None:
        self.batch, self.context, self.queries = batch, context, queries
        self.bytes = batch * context * KV_HEADS * DIM * 4
        self.sets = 1 if warm else max(2, min(60, math.ceil(COLD_BYTES / self.bytes)))
        generator = torch.Generator("cuda").manual_seed(7)
        pages = math.ceil(context / PAGE)
        total = self.sets * batch * pages
        self.cache = torch.empty(total, PAGE, KV_HEADS, 2 * DIM, device="cuda", dtype=torch.bfloat16)
        self.cache.normal_(generator=generator)
        order = torch.randperm(total, generator=generator, device="cuda").int()
        self.tables = order.view(self.sets, batch, pages)
        shape = (self.sets, batch * queries, HEADS, DIM)
        self.query = torch.empty(shape, device="cuda", dtype=torch.bfloat16).normal_(generator=generator)
        self.out = torch.full_like(self.query, float("nan"))
        self.lens = torch.full((batch,), context, device="cuda", dtype=torch.int32)
        self.starts = torch.arange(batch + 1, device="cuda", dtype=torch.int32) * queries

    def tensors(self, i: int) -> tuple[torch.Tensor, ...]:
        return (self.query[i], self.cache[..., :DIM], self.cache[..., DIM:], self.tables[i], self.lens, self.starts)


def fa3(x: Inputs, splits: int = 32) -> Callable[[int], None]:
    ops, longest = torch.ops._vllm_fa3_C, x.tables.shape[2] * PAGE
    none: list[Any] = [None] * 8
    meta = ops.get_scheduler_metadata(
        *(x.batch, x.queries, longest, HEADS, KV_HEADS, DIM, DIM, torch.bfloat16, x.lens, x.starts),
        *(None, None, None, None, PAGE, 0, True, -1, -1, False, splits, None, 0),
    )

    def launch(i: int) -> None:
        query, keys, values, table, lens, starts = x.tensors(i)
        ops.fwd(
            *(
                query,
                keys,
                values,
                None,
                None,
                None,
                x.out[i],
                starts,
                None,
                None,
                None,
                lens,
                x.queries,
                longest,
                table,
            ),
            *(*none, DIM**-0.5, True, -1, -1, 0.0, True, meta, splits, None, 0, None, 1, 0, None),
        )

    return launch


class Int8:
    """The inputs over an int8 cache of the same lengths: keys, their scale, values, their scale."""

    def __init__(self, x: Inputs) -> None:
        self.inputs = x
        raw = torch.randint(-127, 127, (*x.cache.shape[:3], 2 * (DIM + 4)), dtype=torch.int8, device="cuda")
        scales = raw.view(torch.float32)
        self.keys, self.values = raw[..., :DIM], raw[..., DIM + 4 : 2 * DIM + 4]
        self.scales = (scales[..., DIM // 4], scales[..., DIM // 2 + 1])
        for each in self.scales:
            each.uniform_(0.005, 0.02)

    def tensors(self, i: int) -> tuple[torch.Tensor, ...]:
        query, _, _, table, lens, starts = self.inputs.tensors(i)
        return query, self.keys, self.values, table, lens, starts


def measure_shape(ops: ModuleType, cuda: Any, tri: Any, batch: int, queries: int, context: int) -> dict[str, Any]:
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    plan = Plan(cuda.num_sms // KV_HEADS, 4)
    x = Inputs(batch, context, queries)

    def ours(i: int, x: Inputs | Int8 = x) -> None:
        cuda(plan, *x.tensors(i), queries, DIM**-0.5, out[i])

    out = x.out
    row: dict[str, Any] = {"batch": batch, "queries": queries, "context": context, "bytes": x.bytes}
    row |= {"fa3": time_graph(fa3(x), x.sets), "cuda": time_graph(ours, x.sets)}
    if batch == 1 and queries in (5, 16):
        row["triton"] = time_graph(lambda i: tri(*x.tensors(i), queries, DIM**-0.5, out[i]), x.sets)
        if context <= 8192:
            w = Inputs(batch, context, queries, warm=True)
            row["fa3 warm"] = time_graph(fa3(w), 1)
            row["cuda warm"] = time_graph(lambda i: ours(i, w), 1)
    if queries * HEADS // KV_HEADS <= MAX_ROWS_INT8:
        y = Int8(x)
        row["int8 bytes"] = batch * context * KV_HEADS * INT8_BYTES
        row["int8"] = time_graph(lambda i: ours(i, y), x.sets)
        if batch in (1, 4, 8) and queries in (2, 5, 16) and context in TRITON_INT8:
            row["int8 triton"] = time_graph(lambda i: tri(*y.tensors(i), queries, DIM**-0.5, out[i], *y.scales), x.sets)
    return row


def measure(ops: ModuleType, *, quick: bool, until: float) -> dict[str, Any]:
    sms, device = torch.cuda.get_device_properties(0).multi_processor_count, torch.device("cuda")
    cuda = ops.CudaVerifyAttention(HEADS, KV_HEADS, DIM, device, sms, torch.cuda.get_device_capability())
    tri = ops.SpecDecodeAttention(HEADS, KV_HEADS, DIM, 16, device, sms, pdl=True)
    rate = copy_rate()
    rows = []
    for batch in (1, 8) if quick else BATCHES:
        for queries in QUERIES:
            if time.time() < until:  # a whole line of a table, or none of it
                for context in CONTEXTS[::3] if quick else CONTEXTS:
                    rows.append(measure_shape(ops, cuda, tri, batch, queries, context))
    return {"copy": rate, "rows": rows}


def passing(rows: list[dict[str, Any]]) -> dict[int, list[int]]:
    """For each batch, the query lengths with which the kernel is within 3% of FA3 or better at every context."""
    good: dict[int, list[int]] = {}
    for batch in sorted({r["batch"] for r in rows}):
        for queries in sorted({r["queries"] for r in rows}):
            mine = [r for r in rows if (r["batch"], r["queries"]) == (batch, queries)]
            if mine and min(r["fa3"][0] / r["cuda"][0] for r in mine) >= 0.97:
                good.setdefault(batch, []).append(queries)
    return good


def cell(t: Timing) -> str:
    return f"{t[0]:.1f} [{t[1]:.1f}, {t[2]:.1f}]"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["", *(f"| {' | '.join(row)} |" for row in (head, ["---:"] * len(head), *rows)), ""]


def batches_table(rows: list[dict[str, Any]], kind: str) -> list[str]:
    """FA3 over a kernel, a line for each batch and query length."""
    contexts = sorted({r["context"] for r in rows})
    shapes = sorted({(r["batch"], r["queries"]) for r in rows if kind in r})
    times = {(r["batch"], r["queries"], r["context"]): r for r in rows}
    lines = [
        [str(b), str(q), *(f"{times[b, q, c]['fa3'][0] / times[b, q, c][kind][0]:.2f}" for c in contexts)]
        for b, q in shapes
    ]
    return table(["requests", "query tokens", *(f"{c:,}" for c in contexts)], lines)


def report(found: dict[str, Any]) -> str:
    """The page for docs/measurements."""
    rate, rows = found["copy"], found["rows"]
    one = [r for r in rows if r["batch"] == 1]
    lines = [
        "# Verify attention on an H200",
        "",
        f"Made by `benchmarks/gpu/verify_attention.py` on {found['date']}: {found['card']}, driver {found['driver']},",
        f"torch {found['torch']}, Triton {found['triton']}. {HEADS} query heads, {KV_HEADS} KV heads of {DIM}, pages of",
        f"{PAGE}, causal, bfloat16. Microseconds a launch, launches one after another in a CUDA graph: median [least,",
        f"most] of {REPEATS} replays. Caches of at least {COLD_BYTES / 1e6:.0f} MB are gone through in turn (the L2 has",
        "60 MB), but for the columns that say warm. FA3 is the release's own, called as the engine calls it under CUDA",
        "graphs. The roofline is the bytes of keys, values and scales, each read once, at the rate of a copy on this card,",
        f"{rate:.2f} TB/s; beside each time stands its share of that.",
        "",
        "## One request",
    ]
    head = ["query tokens", "context", "roofline", "FA3", "of it", "CUDA", "of it", "FA3 / CUDA", "Triton"]
    cells = []
    for r in one:
        floor = r["bytes"] / rate / 1e6
        cells.append([str(r["queries"]), f"{r['context']:,}", f"{floor:.1f}"])
        for name in ("fa3", "cuda"):
            cells[-1] += [cell(r[name]), f"{floor / r[name][0]:.0%}"]
        cells[-1] += [f"{r['fa3'][0] / r['cuda'][0]:.2f}", cell(r["triton"]) if "triton" in r else ""]
    lines += [*table(head, cells), "In a warm L2:"]
    warm = [
        [
            *(str(r["queries"]), f"{r['context']:,}", cell(r["fa3 warm"]), cell(r["cuda warm"])),
            f"{r['fa3 warm'][0] / r['cuda warm'][0]:.2f}",
        ]
        for r in one
        if "cuda warm" in r
    ]
    lines += [
        *table(["query tokens", "context", "FA3", "CUDA", "FA3 / CUDA"], warm),
        "## One request over an int8 cache",
        "",
        "FA3 is the one above, over bfloat16: it reads no int8.",
    ]
    cells = []
    for r in one:
        if "int8" in r:
            floor = r["int8 bytes"] / rate / 1e6
            cells.append([str(r["queries"]), f"{r['context']:,}", f"{floor:.1f}", cell(r["int8"])])
            cells[-1] += [f"{floor / r['int8'][0]:.0%}", f"{r['fa3'][0] / r['int8'][0]:.2f}"]
            cells[-1].append(cell(r["int8 triton"]) if "int8 triton" in r else "")
    head = ["query tokens", "context", "roofline", "CUDA", "of it", "FA3, bfloat16 / CUDA, int8", "Triton, int8"]
    lines += [*table(head, cells), "## Batches: FA3 / CUDA", *batches_table(rows, "cuda")]
    lines += ["Within 3% of FA3 or better at every context, and so in the table of the patch:", ""]
    for batch, queries in passing(rows).items():
        lines.append(f"- {batch} request{'s' * (batch > 1)}: {', '.join(map(str, queries))} query tokens")
    lines += ["", "## Batches: FA3 over bfloat16 / CUDA over int8", *batches_table(rows, "int8")]
    slower = [r for r in rows if "int8 triton" in r]
    ratios = [r["int8 triton"][0] / r["int8"][0] for r in slower]
    if ratios:
        lines.append(
            f"The Triton kernel over the same int8 cache took {min(ratios):.1f} to {max(ratios):.1f} times as long, in"
            f" {len(ratios)} shapes of 1, 4 and 8 requests."
        )
    missing = [str(b) for b in sorted(BATCHES) if b not in {r["batch"] for r in rows}]
    if missing:
        lines.append(f"Not run: batches of {', '.join(missing)}.")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("--tree", "--library", "--fa3", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="fewer shapes")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which no line of shapes is begun")
    given = parser.parse_args()
    import checks
    from alone import load

    began = time.time()
    ops = load(given.tree, given.library)
    torch.ops.load_library(str(given.fa3))
    errors = {name: checks.check(ops, kv_lens, q_lens, **how) for name, kv_lens, q_lens, how in checks.CASES}
    for name, kv_lens, q_lens, how in checks.CASES:
        if checks.fits_int8(q_lens, how):
            errors[f"{name}, int8"] = checks.check(ops, kv_lens, q_lens, int8=True, **how)
    for name, kv_lens, q_lens, how in checks.CASES:
        for int8 in (False, True):
            errors[f"{name}, Triton{', int8' * int8}"] = checks.check_triton(ops, kv_lens, q_lens, int8=int8, **how)
    for check in checks.CHECKS:
        check(ops)
        check(ops, int8=True)
    checks.check_scales(ops)
    print(
        f"checks: {len(errors)} batches, worst error {max(errors.values()):.2e}, {time.time() - began:.0f} s",
        flush=True,
    )
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    found = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "card": torch.cuda.get_device_name(),
        "driver": subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0],
        "torch": torch.__version__,
        "triton": triton.__version__,
        "errors": errors,
        **measure(ops, quick=given.quick, until=began + given.limit),
    }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "verify-attention-h200.json").write_text(json.dumps(found))
    (given.out / "verify-attention-h200.md").write_text(report(found))
    print(f"measured {len(found['rows'])} shapes, {time.time() - began:.0f} s; passing: {passing(found['rows'])}")


if __name__ == "__main__":
    main()
