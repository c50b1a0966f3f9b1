"""The CUDA verify attention against float64, on the GPU: plain functions, so that pytest, a benchmark and a sanitizer run them.

Outputs are poisoned before every launch, so are the slots behind each request and the pages of nobody; lengths straddle pages,
tiles and segments; each batch runs several times, on buffers that the run before has to have left as it found them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
from batches import Batch, make_batch, quantised, relative_error

BOUND = 5e-3  # of bfloat16 probabilities and output; 2.0e-3 to 2.4e-3 is usual
NAMES = ("part", "limits")

# Name, KV lengths, query lengths, what else.
CASES: list[tuple[str, list[int], list[int], dict[str, Any]]] = [
    ("one page", [16], [2], {}),
    ("its own block alone", [5], [5], {}),
    ("one token past a tile", [65], [16], {}),
    ("several tiles", [777], [16], {}),
    ("9 query tokens", [1000], [9], {}),
    ("every segment short", [33 * 16 + 1], [8], {}),
    ("long, few rows", [25601], [5], {}),
    ("long, many rows", [25601], [16], {}),
    ("128k", [131072], [11], {}),
    ("ragged", [1000, 20, 333, 20, 4097], [3, 16, 1, 3, 7], {}),
    ("padded requests", [64, 0, 129, 0], [2, 0, 2, 0], {}),
    ("8 requests", [8192 - 7 * i for i in range(8)], [16] * 8, {}),
    ("32 requests", [1 + 97 * i for i in range(1, 33)], [2] * 32, {}),
    ("pages of 48", [500, 100], [4, 4], {"block_size": 48}),
    ("pages of 432", [5000], [16], {"block_size": 432}),
    ("8 heads of one group", [3000], [16], {"heads": 8, "kv_heads": 1}),
    ("no groups", [700, 50], [5, 3], {"heads": 8, "kv_heads": 8}),
    ("12 and 2 heads", [9000], [16], {"heads": 12, "kv_heads": 2}),
]


def heads_first(batch: Batch) -> None:
    """The cache again, with the positions of a head together, as another layout of the engine has them."""
    batch.cache = batch.cache.transpose(1, 2).contiguous().transpose(1, 2)


def attention(ops: ModuleType, batch: Batch) -> Any:
    """The kernels for a batch."""
    geometry = (batch.query.shape[1], batch.cache.shape[2], batch.head_size)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    return ops.CudaVerifyAttention(*geometry, torch.device("cuda"), sms, torch.cuda.get_device_capability())


Caches = tuple[torch.Tensor, ...]  # keys and values, for int8 their scales too


def launch(
    made: Any, plan: Any, batch: Batch, caches: Caches | None = None, longest: int | None = None
) -> torch.Tensor:
    out = batch.poisoned()
    caches = caches or (batch.keys, batch.values)
    assert made.fits(batch.query, *caches[:2], out, *caches[2:])
    tensors = (batch.query, *caches[:2], batch.table, batch.kv_lens, batch.q_starts)
    made(plan, *tensors, longest or batch.longest_query, batch.head_size**-0.5, out)
    torch.cuda.synchronize()
    return out


def fits_int8(q_lens: list[int], how: dict[str, Any]) -> bool:
    """Whether the kernel over int8 takes a batch: an even number of KV heads, 96 query rows for each."""
    heads, kv_heads = how.get("heads", 24), how.get("kv_heads", 4)
    return kv_heads % 2 == 0 and max(q_lens) * heads // kv_heads <= 96


def check(
    ops: ModuleType, kv_lens: list[int], q_lens: list[int], seed: int = 0, int8: bool = False, **how: Any
) -> float:
    """The worst relative error of a batch over its layouts, several cuts, and launches over used buffers."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    geometry = {"heads": 24, "kv_heads": 4, **how}
    batch = make_batch(kv_lens, q_lens, head_size=256, dtype=torch.bfloat16, device="cuda", seed=seed, **geometry)
    caches = quantised(batch) if int8 else None
    expected = batch.expected()
    most = torch.cuda.get_device_properties(0).multi_processor_count // batch.cache.shape[2]
    worst = 0.0
    for layout in (None,) if int8 else (None, heads_first):
        if layout:
            layout(batch)
        made = attention(ops, batch)
        addresses = [getattr(made, name).data_ptr() for name in NAMES]
        for slots, least in ((most, 4), (max(len(kv_lens), most // 3), 1), (most, 16), (len(kv_lens), 1)):
            error = relative_error(launch(made, Plan(slots, least), batch, caches), expected)
            assert error < BOUND, (kv_lens, q_lens, how, slots, least, error)  # NaN too
            worst = max(worst, error)
            assert all(bool((getattr(made, name) == -1).all()) for name in NAMES), (kv_lens, q_lens, slots, least)
        assert addresses == [getattr(made, name).data_ptr() for name in NAMES]
    return worst


def check_scales(ops: ModuleType) -> None:
    """Scales that differ by 2^40 along an int8 cache, rows of nothing but zeros with a scale of zero among them."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    batch = make_batch([3000], [16], heads=24, kv_heads=4, head_size=256, dtype=torch.bfloat16, device="cuda", seed=5)
    used = batch.table[0, : -(-3000 // 16)].long()
    factors = torch.logspace(-20, 20, len(used), base=2, device="cuda").bfloat16()
    batch.cache[used, :, :, 256:] *= factors[torch.randperm(len(used), device="cuda")][:, None, None, None]
    batch.cache[used[5], :, :, 256:] = 0.0
    caches = quantised(batch)
    assert float(caches[3][used[5]].abs().max()) == 0.0
    batch.cache = batch.cache.nan_to_num()  # 0 / 0, of those rows
    for slots in (33, 1):
        error = relative_error(launch(attention(ops, batch), Plan(slots, 4), batch, caches), batch.expected())
        assert error < BOUND, (slots, error)


def check_graph(ops: ModuleType) -> None:
    """A captured graph stays right when lengths, pages and queries change under it."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    geometry: dict[str, Any] = {"heads": 24, "kv_heads": 4, "head_size": 256, "dtype": torch.bfloat16, "device": "cuda"}
    batch = make_batch([4000, 4000], [5, 5], seed=1, **geometry)
    made, out = attention(ops, batch), batch.poisoned()
    tensors = (batch.query, batch.keys, batch.values, batch.table, batch.kv_lens, batch.q_starts)
    launch(made, Plan(33, 4), batch)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made(Plan(33, 4), *tensors, 5, 256**-0.5, out)
    for seed, lengths in enumerate(([4000, 4000], [17, 3999], [2500, 6])):
        other = make_batch(lengths, [5, 5], seed=seed, **geometry)
        batch.cache[: other.cache.shape[0]] = other.cache
        batch.table[:, : other.table.shape[1]] = other.table
        batch.query.copy_(other.query)
        batch.kv_lens.copy_(other.kv_lens)
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        error = relative_error(out, other.expected())
        assert error < BOUND, (lengths, error)


def check_large_values(ops: ModuleType) -> None:
    """Scores that grow along the context raise the maximum again and again; values far from 1 keep their precision."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    for scale in (1e-4, 1e4):
        batch = make_batch(
            [3000], [16], heads=24, kv_heads=4, head_size=256, dtype=torch.bfloat16, device="cuda", seed=3
        )
        growth = torch.linspace(0.1, 6.0, batch.cache.shape[0], device="cuda").bfloat16()
        order = torch.empty(batch.cache.shape[0], dtype=torch.long, device="cuda")
        used = batch.table[0, : -(-3000 // 16)].long()
        order[used] = torch.arange(len(used), device="cuda")
        batch.cache[used, :, :, :256] *= growth[order[used]][:, None, None, None]
        batch.cache[used, :, :, 256:] *= scale
        error = relative_error(launch(attention(ops, batch), Plan(33, 4), batch), batch.expected())
        assert error < BOUND, (scale, error)


def main() -> None:
    """What a sanitizer runs: TREE LIBRARY."""
    from alone import load

    ops = load(Path(sys.argv[1]), Path(sys.argv[2]))
    for name, kv_lens, q_lens, how in CASES:
        if sum(kv_lens) < 3000:
            print(f"{name}: {check(ops, kv_lens, q_lens, **how):.2e}", flush=True)
            if fits_int8(q_lens, how):
                print(f"{name}, int8: {check(ops, kv_lens, q_lens, int8=True, **how):.2e}", flush=True)


if __name__ == "__main__":
    main()
