"""The verify attention over int8 with a scale per token and head, beside attention over what that dequantises to."""

from __future__ import annotations

import pytest
import torch
from batches import Batch, make_batch, quantised, relative_error
from test_spec_decode_attn import BFLOAT16, attention


def run(batch: Batch, caches: tuple[torch.Tensor, ...] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    keys, values, k_scales, v_scales = caches or quantised(batch)
    assert not keys.is_contiguous() and not k_scales.is_contiguous()
    out = batch.poisoned()
    attention(batch)(
        batch.query,
        keys,
        values,
        batch.table,
        batch.kv_lens,
        batch.q_starts,
        batch.longest_query,
        batch.head_size**-0.5,
        out,
        k_scales,
        v_scales,
    )
    return out, batch.expected()


@pytest.mark.parametrize("q_len", [1, 2, 7])
@pytest.mark.parametrize("kv_len", [17, 65, 300])
def test_one_request(kv_len: int, q_len: int) -> None:
    assert relative_error(*run(make_batch([kv_len], [q_len], seed=kv_len + q_len))) < 1e-4


def test_a_ragged_batch() -> None:
    assert relative_error(*run(make_batch([64, 0, 230, 5], [2, 0, 4, 5], seed=21))) < 1e-4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_at_the_models_geometry(dtype: torch.dtype) -> None:
    batch = make_batch([100, 40], [3, 2], heads=24, kv_heads=4, head_size=256, seed=22)
    batch.query = batch.query.to(dtype)
    assert 1e-5 < relative_error(*run(batch)) < BFLOAT16


def test_offsets_of_scales_do_not_wrap_at_32_bits() -> None:
    """A block whose scales lie past 2**31 words: the strides say so, without the memory in between."""
    batch = make_batch([20], [3], heads=2, kv_heads=1, seed=24)
    near = quantised(batch)
    expected, ids = batch.expected(), batch.table[0, :2].tolist()
    apart = 4 * (2**31 // 3 + 16)
    pool = torch.empty(3 * apart + 16 * 2 * 68, dtype=torch.int8)  # reserved, not touched
    words = pool.view(torch.float32)
    held = [pool.as_strided((4, 16, 1, 64), (apart, 136, 136, 1), at) for at in (0, 68)]
    held += [words.as_strided((4, 16, 1), (apart // 4, 34, 34), at) for at in (16, 33)]
    for far, one in zip(held, near, strict=True):
        far[2], far[3] = one[ids[0]], one[ids[1]]
    batch.table = torch.tensor([[2, 3]], dtype=torch.int32)
    assert 3 * apart // 4 > 2**31
    assert relative_error(run(batch, tuple(held))[0], expected) < 1e-4


def test_without_scales_it_refuses() -> None:
    batch = make_batch([20], [2], seed=23)
    cache = torch.zeros(batch.keys.shape, dtype=torch.int8)
    with pytest.raises(AssertionError):
        attention(batch)(
            batch.query, cache, cache, batch.table, batch.kv_lens, batch.q_starts, 2, 0.125, batch.poisoned()
        )
