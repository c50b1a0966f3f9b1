"""The split-KV verify attention against float64, over poisoned memory."""

from __future__ import annotations

import random

import pytest
import torch
import triton
import triton.language as tl
from batches import Batch, make_batch, relative_error
from vllm.v1.attention.ops import spec_decode_attn as ops

FLOAT32, BFLOAT16 = 5e-6, 1e-2


def attention(batch: Batch, *, sms: int = 8, max_query_len: int = 16) -> ops.SpecDecodeAttention:
    made = ops.SpecDecodeAttention(
        batch.query.shape[1], batch.cache.shape[2], batch.head_size, max_query_len, torch.device("cpu"), sms, pdl=False
    )
    for buffer in (made.part, made.part_max, made.part_sum):
        buffer.fill_(float("nan"))
    return made


def run(batch: Batch, made: ops.SpecDecodeAttention | None = None, *, longest: int | None = None) -> torch.Tensor:
    made = made or attention(batch)
    out = batch.poisoned()
    made(
        batch.query,
        batch.keys,
        batch.values,
        batch.table,
        batch.kv_lens,
        batch.q_starts,
        longest or batch.longest_query,
        batch.head_size**-0.5,
        out,
    )
    return out


@pytest.mark.parametrize("q_len", [1, 2, 5, 8, 16])
@pytest.mark.parametrize("kv_len", [16, 17, 64, 65, 200, 511])
def test_one_request(kv_len: int, q_len: int) -> None:
    batch = make_batch([kv_len], [q_len], seed=kv_len * 100 + q_len)
    assert relative_error(run(batch), batch.expected()) < FLOAT32


@pytest.mark.parametrize(
    ("kv_lens", "q_lens"),
    [
        ([5], [5]),  # nothing but its own block
        ([1, 1], [1, 1]),
        ([300, 4, 33], [4, 4, 1]),
        ([64, 0, 129, 0], [2, 0, 2, 0]),  # padded requests, as in a captured graph
        ([1000, 20, 20, 20, 20], [3, 3, 3, 3, 3]),  # one far longer than the others
        ([17] * 9, [2] * 9),  # more requests than segments of one wave
    ],
)
def test_ragged_batches(kv_lens: list[int], q_lens: list[int]) -> None:
    batch = make_batch(kv_lens, q_lens, seed=sum(kv_lens))
    assert relative_error(run(batch), batch.expected()) < FLOAT32


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_size", "block_size"),
    [(24, 4, 256, 16), (8, 8, 128, 16), (5, 1, 64, 48), (6, 2, 64, 1), (8, 2, 128, 432), (7, 1, 64, 7)],
)
def test_geometries(heads: int, kv_heads: int, head_size: int, block_size: int) -> None:
    batch = make_batch(
        [70, 130], [5, 3], heads=heads, kv_heads=kv_heads, head_size=head_size, block_size=block_size, seed=heads
    )
    assert relative_error(run(batch), batch.expected()) < FLOAT32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype: torch.dtype) -> None:
    batch = make_batch([333, 40], [5, 2], heads=24, kv_heads=4, head_size=256, dtype=dtype, seed=9)
    assert 1e-5 < relative_error(run(batch), batch.expected()) < BFLOAT16


def test_more_query_tokens_than_fit_one_tile() -> None:
    """40 tokens of 6 heads are two tiles of rows."""
    batch = make_batch([90, 70], [40, 22], heads=6, kv_heads=1, seed=11)
    assert relative_error(run(batch, attention(batch, max_query_len=64)), batch.expected()) < FLOAT32


def test_the_bound_of_the_query_lengths_may_be_loose() -> None:
    """A captured graph launches for the longest query it may see."""
    batch = make_batch([150, 90], [2, 1], seed=12)
    assert relative_error(run(batch, longest=16), batch.expected()) < FLOAT32


def test_random_batches() -> None:
    chance = random.Random(5)
    for seed in range(12):
        q_lens = [chance.choice([0, 1, 2, 3]) for _ in range(chance.randint(1, 5))]
        if not any(q_lens):
            q_lens[0] = 1
        kv_lens = [q and q + chance.choice([0, 1, 15, 16, 63, chance.randint(0, 400)]) for q in q_lens]
        sms = chance.choice([1, 3, 9])
        batch = make_batch(kv_lens, q_lens, heads=3, kv_heads=1, block_size=chance.choice([16, 32, 80]), seed=seed)
        error = relative_error(run(batch, attention(batch, sms=sms)), batch.expected())
        assert error < FLOAT32, (kv_lens, q_lens, sms)


def test_buffers_are_used_again_without_being_cleared() -> None:
    made = None
    for lengths in ([400, 30], [30, 400], [16, 16]):
        batch = make_batch(lengths, [3, 3], seed=sum(lengths))
        made = made or attention(batch)
        addresses = [made.part.data_ptr(), made.part_max.data_ptr(), made.part_sum.data_ptr()]
        assert relative_error(run(batch, made), batch.expected()) < FLOAT32
        assert addresses == [made.part.data_ptr(), made.part_max.data_ptr(), made.part_sum.data_ptr()]


def test_offsets_of_blocks_do_not_wrap_at_32_bits() -> None:
    """A block at an offset past 2**31 elements: the strides say so, without the memory in between.

    Blocks 0 and 1 are a page apart in address space that is never touched, so a 32-bit product reads elsewhere.
    """
    batch = make_batch([20], [3], heads=2, kv_heads=1, dtype=torch.float16, seed=13)
    apart = 2**31 // 3 + 16
    pool = torch.empty(3 * apart + batch.cache[0].numel(), dtype=torch.float16)  # reserved, not touched
    ids = batch.table[0, :2].tolist()
    far = pool.as_strided((4, *batch.cache.shape[1:]), (apart, *batch.cache.stride()[1:]))
    far[2], far[3] = batch.cache[ids[0]], batch.cache[ids[1]]
    expected = batch.expected()
    batch.cache, batch.table = far, torch.tensor([[2, 3]], dtype=torch.int32)
    assert 3 * apart > 2**31
    assert relative_error(run(batch), expected) < BFLOAT16


def test_offsets_of_tokens_do_not_wrap_at_32_bits() -> None:
    """The last query token and its output past 2**31 elements, with a cache that is cut and one that is not."""
    apart = 2**31 // 2 + 64
    for length in (20, 300):
        batch = make_batch([length], [3], heads=2, kv_heads=1, dtype=torch.float16, seed=length)
        expected = batch.expected()
        pools = [torch.empty(2 * apart + 2 * 64, dtype=torch.float16) for _ in range(2)]  # reserved, not touched
        query, out = (pool.as_strided((3, 2, 64), (apart, 64, 1)) for pool in pools)
        query.copy_(batch.query)
        out.fill_(float("nan"))
        lengths = (batch.table, batch.kv_lens, batch.q_starts)
        attention(batch)(query, batch.keys, batch.values, *lengths, 3, 0.125, out)
        assert relative_error(out, expected) < BFLOAT16


def test_query_and_output_may_be_strided() -> None:
    batch = make_batch([100, 50], [4, 4], seed=14)
    wide = torch.full((8, 6, 3 * 64), float("nan"))
    wide[..., 64:128] = batch.query
    dense, batch.query = batch.query, wide[..., 64:128]
    result = torch.full((8, 6, 128), float("nan"))
    made = attention(batch)
    made(batch.query, batch.keys, batch.values, batch.table, batch.kv_lens, batch.q_starts, 4, 0.125, result[..., :64])
    batch.query = dense
    assert relative_error(result[..., :64], batch.expected()) < FLOAT32
    assert result[..., 64:].isnan().all()


@triton.jit
def _shares(kv_ptr, q_ptr, out_ptr, num_reqs, short, long, REQS: tl.constexpr):
    units, count, before, split = ops._segments(kv_ptr, q_ptr, num_reqs, short, long, 16, 4, 16, 8, REQS)
    r = tl.arange(0, REQS)
    tl.store(out_ptr + r, units)
    tl.store(out_ptr + REQS + r, count)
    tl.store(out_ptr + 2 * REQS + r, before)
    tl.store(out_ptr + 3 * REQS + r, split)


def test_the_segments_fit_the_grid_and_the_partials_the_buffer() -> None:
    chance = random.Random(6)
    for _ in range(150):
        num_reqs = chance.choice([1, 2, 3, 8, 30, 64])
        short = chance.choice([2, 3, 33])
        long = short * chance.choice([1, 2])
        tops = [chance.choice([1, 100, 5000, 200000]) for _ in range(num_reqs)]
        lengths = [chance.choice([0, chance.randint(1, top)]) for top in tops]
        starts = torch.tensor([0, *[int(n > 0) for n in lengths]]).cumsum(0).int()
        reqs = triton.next_power_of_2(num_reqs)
        out = torch.full((4, reqs), -1, dtype=torch.int32)
        _shares[(1,)](torch.tensor(lengths, dtype=torch.int32), starts, out, num_reqs, short, long, REQS=reqs)
        units, count, before, split = out[:, :num_reqs].tolist()
        assert units == [-(-n // 16) for n in lengths]
        assert [bool(c) for c in count] == [bool(n) for n in lengths]
        assert all(c <= u for c, u in zip(count, units, strict=True))
        grid = max(long, num_reqs + long // 2)
        assert sum(count) <= grid
        assert before == [sum(count[:i]) for i in range(num_reqs)]
        several = [c if c > 1 else 0 for c in count]
        assert split == [sum(several[:i]) for i in range(num_reqs)]
        assert sum(several) <= long <= 2 * short


@pytest.mark.parametrize(
    ("knob", "drafts", "group", "limit"),
    [(0, None, 6, 0), (0, 3, 6, 10), (0, 15, 6, 16), (12, 3, 6, 12), (5, None, 6, 10), (0, 99, 6, 64), (0, 3, 1, 64)],
)
def test_the_longest_query(knob: int, drafts: int | None, group: int, limit: int) -> None:
    assert ops.query_len_limit(knob, drafts, group) == limit


@pytest.mark.parametrize("group", [1, 6, 8, 100])
@pytest.mark.parametrize("query_len", [1, 2, 5, 16, 64])
def test_a_tile_has_room_for_the_group(query_len: int, group: int) -> None:
    tiling = ops.choose_tiling(query_len, group, 256)
    assert tiling.rows >= group
    assert tiling.rows == triton.next_power_of_2(tiling.rows) <= ops.MAX_ROWS
    if query_len * group <= ops.MAX_ROWS:
        assert tiling.rows >= query_len * group
