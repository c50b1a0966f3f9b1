"""The CUDA verify attention against float64, on the GPU: plain functions, so that pytest, a benchmark and a sanitizer run them.

Outputs are poisoned before every launch, so are the slots behind each request and the pages of nobody; lengths straddle pages,
tiles and segments; each batch runs several times, on buffers that the run before has to have left as it found them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
from batches import Batch, make_batch, quantised, relative_error

BOUND = 5e-3  # of any token, of bfloat16 probabilities and output
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
    ("one long request of many", [20000, 17, 40, 33], [2, 16, 16, 16], {}),
    ("queries and output with gaps", [900, 70], [5, 9], {"gaps": True}),
]


GAPS = (slice(None), slice(1, -2), slice(None, -8))  # what of ``with_gaps`` is not a gap


def with_gaps(rows: torch.Tensor) -> torch.Tensor:
    """[tokens, heads, size] between others that are NaN, as a slice of fused projections lies."""
    tokens, heads, size = rows.shape
    wide = torch.full((tokens, heads + 3, size + 8), float("nan"), dtype=rows.dtype, device=rows.device)
    wide[GAPS] = rows
    return wide


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
    wide = None if batch.query.is_contiguous() else with_gaps(out)
    out = out if wide is None else wide[GAPS]
    caches = caches or (batch.keys, batch.values)
    assert made.fits(batch.query, *caches[:2], out, *caches[2:])
    tensors = (batch.query, *caches[:2], batch.table, batch.kv_lens, batch.q_starts)
    made(plan, *tensors, longest or batch.longest_query, batch.head_size**-0.5, out)
    torch.cuda.synchronize()
    assert wide is None or int(wide.isnan().sum()) == wide.numel() - out.numel()
    return out


def fits_int8(q_lens: list[int], how: dict[str, Any]) -> bool:
    """Whether the kernel over int8 takes a batch: an even number of KV heads, 96 query rows for each."""
    heads, kv_heads = how.get("heads", 24), how.get("kv_heads", 4)
    return kv_heads % 2 == 0 and max(q_lens) * heads // kv_heads <= 96


def check(
    ops: ModuleType,
    kv_lens: list[int],
    q_lens: list[int],
    seed: int = 0,
    int8: bool = False,
    gaps: bool = False,
    **how: Any,
) -> float:
    """The worst relative error of a batch over its layouts, several cuts, and launches over used buffers."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    geometry = {"heads": 24, "kv_heads": 4, **how}
    batch = make_batch(kv_lens, q_lens, head_size=256, dtype=torch.bfloat16, device="cuda", seed=seed, **geometry)
    if gaps:
        batch.query = with_gaps(batch.query)[GAPS]
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


def check_triton(
    ops: ModuleType, kv_lens: list[int], q_lens: list[int], int8: bool = False, gaps: bool = False, **how: Any
) -> float:
    """The Triton kernels over the same batch, their launches overlapping, twice on the same buffers."""
    geometry = {"heads": 24, "kv_heads": 4, **how}
    batch = make_batch(kv_lens, q_lens, head_size=256, dtype=torch.bfloat16, device="cuda", seed=1, **geometry)
    if gaps:
        batch.query = with_gaps(batch.query)[GAPS]
    caches = quantised(batch) if int8 else (batch.keys, batch.values)
    expected = batch.expected()
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    heads = (batch.query.shape[1], batch.cache.shape[2], 256)
    made = ops.SpecDecodeAttention(*heads, 16, torch.device("cuda"), sms, pdl=True)
    for buffer in (made.part, made.part_max, made.part_sum):
        buffer.fill_(float("nan"))
    worst = 0.0
    for _ in range(2):
        wide = with_gaps(batch.poisoned())
        lengths = (batch.table, batch.kv_lens, batch.q_starts)
        made(batch.query, *caches[:2], *lengths, batch.longest_query, 256**-0.5, wide[GAPS], *caches[2:])
        torch.cuda.synchronize()
        assert int(wide.isnan().sum()) == wide.numel() - batch.query.numel()
        error = relative_error(wide[GAPS], expected)
        assert error < BOUND, (kv_lens, q_lens, how, error)
        worst = max(worst, error)
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


GEOMETRY: dict[str, Any] = {"heads": 24, "kv_heads": 4, "head_size": 256, "dtype": torch.bfloat16, "device": "cuda"}


def check_graph(ops: ModuleType, int8: bool = False) -> None:
    """A captured graph stays right when lengths, pages and queries change under it."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    batch = make_batch([4000, 4000], [5, 5], seed=1, **GEOMETRY)
    caches = quantised(batch) if int8 else (batch.keys, batch.values)
    made, out = attention(ops, batch), batch.poisoned()
    tensors = (batch.query, *caches[:2], batch.table, batch.kv_lens, batch.q_starts)
    launch(made, Plan(33, 4), batch, caches)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made(Plan(33, 4), *tensors, 5, 256**-0.5, out)
    for seed, lengths in enumerate(([4000, 4000], [17, 3999], [2500, 6])):
        other = make_batch(lengths, [5, 5], seed=seed, **GEOMETRY)
        for mine, new in zip(caches, quantised(other) if int8 else (other.keys, other.values), strict=True):
            mine[: len(new)] = new
        batch.table[:, : other.table.shape[1]] = other.table
        batch.query.copy_(other.query)
        batch.kv_lens.copy_(other.kv_lens)
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        error = relative_error(out, other.expected())
        assert error < BOUND, (lengths, error)


def check_large_values(ops: ModuleType, int8: bool = False) -> None:
    """Scores that grow along the context raise the maximum again and again; values far from 1 keep their precision."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    for scale in (1e-4, 1e4):
        batch = make_batch([3000], [16], seed=3, **GEOMETRY)
        growth = torch.linspace(0.1, 6.0, batch.cache.shape[0], device="cuda").bfloat16()
        order = torch.empty(batch.cache.shape[0], dtype=torch.long, device="cuda")
        used = batch.table[0, : -(-3000 // 16)].long()
        order[used] = torch.arange(len(used), device="cuda")
        batch.cache[used, :, :, :256] *= growth[order[used]][:, None, None, None]
        batch.cache[used, :, :, 256:] *= scale
        caches = quantised(batch) if int8 else None
        error = relative_error(launch(attention(ops, batch), Plan(33, 4), batch, caches), batch.expected())
        assert error < BOUND, (scale, error)


def check_not_numbers(ops: ModuleType, int8: bool = False) -> None:
    """A NaN in a query row, a key or a value comes out where it belongs, and nowhere else."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    for place in ("query", "key", "value"):
        batch = make_batch([3000], [16], seed=7, **GEOMETRY)
        page, slot = batch.table[0, 6].long(), 4  # position 100, which all rows see
        if place == "query":
            batch.query[3, 7, 200] = float("nan")
        elif not int8:
            batch.cache[page, slot, 2, 200 if place == "key" else 456] = float("nan")
        caches = quantised(batch) if int8 else None
        if caches and place != "query":
            caches[2 if place == "key" else 3][page, slot, 2] = float("nan")
            half = slice(0, 256) if place == "key" else slice(256, 512)
            batch.cache[page, slot, 2, half] = float("nan")
        expected = batch.expected()
        for slots in (33, 1):
            out = launch(attention(ops, batch), Plan(slots, 4), batch, caches)
            # Which elements of a row a NaN reaches differs; that the row has one does not.
            bad, wanted = out.isnan().any(-1), expected.isnan().any(-1)
            assert torch.equal(bad, wanted) and 0 < int(bad.sum()) < bad.numel(), (place, slots, int(bad.sum()))
            error = relative_error(out[~bad], expected[~bad])
            assert error < BOUND, (place, slots, error)


def check_overlong(ops: ModuleType, int8: bool = False) -> None:
    """More query tokens than the caller said: the launch ends, and the rows there is room for are right."""
    from vllm.v1.attention.ops.spec_decode_attn_cuda.plan import Plan

    batch = make_batch([500, 700], [16, 5], seed=8, **GEOMETRY)
    caches = quantised(batch) if int8 else None
    expected, made = batch.expected(), attention(ops, batch)
    for slots in (33, 2):
        out = launch(made, Plan(slots, 1), batch, caches, longest=5)
        kept = [*range(5), *range(16, 21)]
        error = relative_error(out[kept], expected[kept])
        assert error < BOUND, (slots, error)
        assert bool(out[11:16].isnan().all()), slots  # the least rows of a block are 32, the most here 64
        assert all(bool((getattr(made, name) == -1).all()) for name in NAMES), slots


def check_refusals(ops: ModuleType, int8: bool = False) -> None:
    """What the kernels could only misread is refused, before anything is launched."""
    batch = make_batch([500, 700], [5, 5], seed=9, **GEOMETRY)
    made, out = attention(ops, batch), batch.poisoned()
    caches = quantised(batch)[:1] if int8 else (batch.keys, batch.values)
    names = ["out", "part", "limits", "query", "keys", "values", "table", "kv_lens", "q_starts", "max_query_len"]
    if int8:
        names.remove("values")
    lengths = (batch.table, batch.kv_lens, batch.q_starts)
    given = dict(zip(names, (out, made.part, made.limits, batch.query, *caches, *lengths, 5), strict=True))
    wrong: dict[str, list[Any]] = {
        "out": [out[:, :12], out[:5], out.double(), out[..., :128], out.cpu()],
        "part": [made.part.transpose(0, 1), made.part[:3], made.part.cpu()],
        "limits": [made.limits.transpose(0, 1), made.limits[:3], made.limits.long()],
        "query": [batch.query[:, :23], batch.query.transpose(1, 2), batch.query.half()],
        "keys": [caches[0][..., :128], caches[0].cpu(), caches[0][:, :10]],
        "table": [
            batch.table.t().contiguous().t(),
            batch.table[:1],
            batch.table.long(),
            batch.table[0],
            batch.table.cpu(),
        ],
        "kv_lens": [
            batch.kv_lens.repeat_interleave(2)[::2],
            batch.kv_lens.long(),
            batch.kv_lens[:0],
            batch.kv_lens.cpu(),
        ],
        "q_starts": [batch.q_starts[:2], batch.q_starts.repeat_interleave(2)[::2], batch.q_starts.cpu()],
        "max_query_len": [0, -1, 22],
    }
    op = torch.ops.verify_attention.attend_int8 if int8 else torch.ops.verify_attention.attend
    for name, values in wrong.items():
        for number, value in enumerate(values):
            try:
                op(*(given | {name: value}).values(), 33, 4, 0.0625)
            except RuntimeError as error:
                assert "verify_attention" in str(error), (name, number, error)
            else:
                raise AssertionError(f"{name} {number} was taken")
    torch.cuda.synchronize()
    assert bool(out.isnan().all())
    op(*given.values(), 33, 4, 0.0625)
    error = relative_error(out, batch.expected())
    assert error < BOUND, error


CHECKS = (check_graph, check_large_values, check_not_numbers, check_overlong, check_refusals)


def main() -> None:
    """What a sanitizer runs: TREE LIBRARY."""
    from alone import load

    # Each tensor an allocation of its own: what is read or written behind one is in nobody else's.
    os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    ops = load(Path(sys.argv[1]), Path(sys.argv[2]))
    for name, kv_lens, q_lens, how in CASES:
        if sum(kv_lens) < 3000:
            print(f"{name}: {check(ops, kv_lens, q_lens, **how):.2e}", flush=True)
            if fits_int8(q_lens, how):
                print(f"{name}, int8: {check(ops, kv_lens, q_lens, int8=True, **how):.2e}", flush=True)
    for run in (check_large_values, check_not_numbers, check_overlong, check_refusals):
        for int8 in (False, True):
            run(ops, int8)
            print(f"{run.__name__}{', int8' * int8}", flush=True)


if __name__ == "__main__":
    main()
