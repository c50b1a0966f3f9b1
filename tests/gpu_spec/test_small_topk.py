"""Small top-k and the softmax over the whole device, on a card, at the vocabulary of the model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from chance import pearson, truncated
from small_topk_cases import rows_not_finite, rows_of_random, rows_with_ties
from test_sampler_topk import kept

VOCAB = 248320


def cut(logits: torch.Tensor, ks: list[int], p: list[float] | None) -> torch.Tensor:
    from vllm.v1.sample.ops import small_topk

    k, tops = torch.tensor(ks, dtype=torch.int32, device="cuda"), None if p is None else torch.tensor(p, device="cuda")
    return small_topk.apply_small_top_k_top_p(logits.cuda(), k, tops, max(ks)).cpu()


@pytest.mark.parametrize("case", [*rows_of_random(), *rows_with_ties(), *rows_not_finite()])
def test_the_cases_of_the_interpreter(case: str) -> None:
    logits, ks, p = {**rows_of_random(), **rows_with_ties(), **rows_not_finite()}[case]
    found = cut(logits, ks, p)
    for row, (before, after) in enumerate(zip(logits, found, strict=True)):
        chosen = kept(before, ks[row], None if p is None else p[row])
        assert after[~chosen].isneginf().all()
        assert torch.equal(after[chosen].nan_to_num(7), before[chosen].nan_to_num(7))


@pytest.mark.parametrize("rows", [1, 16, 120])
def test_the_vocabulary_with_ties_by_the_thousand(rows: int) -> None:
    """Logits with few distinct values: every program has ties, and which are kept must not depend on who runs first."""
    generator = torch.Generator().manual_seed(rows)
    logits = (torch.randn(rows, VOCAB, generator=generator) * 2).round()
    ks = torch.randint(1, 65, (rows,), generator=generator).tolist()
    first = cut(logits, ks, None)
    for _ in range(5):
        assert torch.equal(cut(logits, ks, None), first)
    for row, (before, after) in enumerate(zip(logits[:8], first, strict=False)):
        assert torch.equal(after.isfinite(), kept(before, ks[row], None))


@pytest.mark.parametrize("rows", [1, 3, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_softmax(rows: int, dtype: Any) -> None:
    from vllm.v1.sample.ops import small_topk

    logits = (torch.randn(rows, VOCAB, device="cuda") * 4).to(dtype)
    exact = logits.double().softmax(-1)
    torch.testing.assert_close(small_topk.multi_block_softmax(logits).double(), exact, rtol=5e-6, atol=1e-12)


def test_draws() -> None:
    """100,000 draws of one row, cut by the kernel in batches."""
    row = torch.randn(VOCAB, generator=torch.Generator().manual_seed(1)) * 2
    counts = torch.zeros(VOCAB, dtype=torch.int64)
    torch.manual_seed(2)
    for _ in range(200):
        logits = cut(row.expand(5, -1).clone(), [20] * 5, [0.9] * 5)
        probs = logits.cuda().softmax(-1).repeat_interleave(100, 0)
        tokens = (probs / torch.empty_like(probs).exponential_()).argmax(-1).cpu()
        counts += torch.bincount(tokens, minlength=VOCAB)
    assert pearson(counts, truncated(row, 20, 0.9)) > 1e-3


def test_nobody_waits_for_the_device() -> None:
    from vllm.v1.sample.ops import small_topk

    logits, k = torch.randn(16, VOCAB, device="cuda"), torch.full((16,), 20, dtype=torch.int32, device="cuda")
    p = torch.full((16,), 0.9, device="cuda")
    small_topk.apply_small_top_k_top_p(logits.clone(), k, p, 20)
    small_topk.multi_block_softmax(logits)
    again = logits.clone()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        small_topk.apply_small_top_k_top_p(again, k, p, 20)
        small_topk.multi_block_softmax(logits)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert (again.isfinite().sum(1) <= 20).all()
