"""Rows that are easy to get wrong for top-k/top-p, cut by the small path and by upstream's kernel; softmaxes cut into chunks."""

from __future__ import annotations

from typing import Any

import torch

INF, NAN = float("inf"), float("nan")


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rows_of_random() -> dict[str, Any]:
    """Random logits, k and p mixed within a batch; vocabularies of less than a block, and of several."""
    found = {}
    for name, ks in {"one": [1, 1], "few": [2, 16], "some": [20, 3], "32": [32, 31], "most": [64, 63]}.items():
        for p in (None, [0.8, 1.0], [0.999, 0.01]):
            found[f"{name} {p}"] = (random(2, 300, seed=len(found)) * 3, ks, p)
    found["several blocks"] = (random(2, 5000, seed=50) * 4, [20, 64], [0.9, 0.95])
    found["all of it listed"] = (random(2, 30, seed=51), [20, 3], [0.9, 1.0])
    return found


def rows_with_ties() -> dict[str, Any]:
    """Equal logits at the cut: as many as wanted, some more, and more than are listed, in one block and across blocks."""
    cut = torch.zeros(4, 60)
    cut[0, [50, 10, 40, 30]] = torch.tensor([3.0, 2.0, 2.0, 2.0])
    cut[1, [50, 10, 40, 30]] = torch.tensor([3.0, 2.0, 2.0, 2.0])
    cut[2, [59, 58]] = 1.0
    coarse = (random(2, 5000, seed=60) * 2).round()
    two = torch.zeros(2, 9001)
    two[0, [8999, 4096, 4095, 0]] = 5.0
    two[1, 4000:8200] = 5.0
    return {
        "cut": (cut, [3, 4, 2, 7], None),
        "cut, p": (cut, [3, 4, 2, 7], [0.75, 0.9, 0.45, 0.5]),
        "coarse": (coarse, [20, 64], None),
        "coarse, p": (coarse, [20, 64], [0.8, 0.33]),
        "across blocks": (two, [3, 61], None),
        "across blocks, p": (two, [4, 64], [0.6, 0.51]),
        "bfloat16's": (random(2, 5000, seed=61).bfloat16().float(), [50, 64], [0.95, 0.9]),
    }


def rows_not_finite() -> dict[str, Any]:
    """Masked rows, with fewer finite logits than k, as many, and none; NaN here and there; an infinite logit."""
    masked = torch.full((4, 500), -INF)
    masked[0, [7, 9]] = torch.tensor([0.5, 0.25])
    masked[1, [7, 9, 11, 480, 499]] = torch.tensor([0.5, 0.5, 0.1, 3.0, -2.0])
    masked[2, ::7] = random(72, seed=70)
    some = random(3, 500, seed=71)
    some[0, [3, 499]] = NAN
    some[1] = NAN
    infinite = random(2, 500, seed=72)
    infinite[0, 44] = INF
    infinite[1, 5] = -INF
    return {
        "masked": (masked, [5, 5, 5, 5], None),
        "masked, p": (masked, [5, 5, 5, 5], [0.5, 0.9, 0.9, 0.9]),
        "NaN": (some, [20, 20, 20], None),
        "NaN, p": (some, [20, 20, 20], [0.9, 0.9, 0.9]),
        "infinite": (infinite, [20, 20], None),
        "infinite, p": (infinite, [20, 20], [0.9, 0.9]),
    }


def nearly_all_nan() -> dict[str, torch.Tensor]:
    """A row whose candidates are nearly all NaN, so that what comes after them is not known."""
    from vllm.v1.sample.ops import small_topk

    row = torch.full((2, 500), NAN)
    row[:, 100:150] = random(50, seed=73)
    row[1] = random(500, seed=74)
    return {"row": row, "cut": small_topk.apply_small_top_k_top_p(row.clone(), torch.tensor([20, 20]), None, 20)}


def cuts() -> dict[str, dict[str, Any]]:
    """Every case, cut once and twice by the small path, and by upstream's kernel."""
    from vllm.v1.sample.ops import small_topk
    from vllm.v1.sample.ops.topk_topp_triton import apply_top_k_top_p_triton

    found = {}
    for name, (logits, ks, p) in {**rows_of_random(), **rows_with_ties(), **rows_not_finite()}.items():
        k, tops = torch.tensor(ks, dtype=torch.int32), None if p is None else torch.tensor(p)
        wide = torch.full((len(ks), logits.shape[1] + 5), NAN)
        wide[:, : logits.shape[1]] = logits
        view = wide[:, : logits.shape[1]]
        small = small_topk.apply_small_top_k_top_p(view, k, tops, max(ks))
        assert small.data_ptr() == wide.data_ptr() and wide[:, logits.shape[1] :].isnan().all()
        found[name] = {
            "logits": logits,
            "k": ks,
            "p": p,
            "small": small.clone(),
            "twice": small_topk.apply_small_top_k_top_p(small.clone(), k, tops, max(ks)),
            "upstream": apply_top_k_top_p_triton(logits.clone(), k, tops),
        }
    return found


def softmaxes() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    from vllm.v1.sample.ops import small_topk

    masked = random(2, 20000, seed=3)
    masked[:, 100:] = -INF
    broken = random(4, 5000, seed=5)
    broken[0, 4321], broken[1, 17] = NAN, INF
    broken[2] = -INF
    shapes = {
        "a few columns": random(2, 37, seed=1) * 5,
        "odd": random(1, 20011, seed=2) * 10,
        "masked": masked,
        "strided": random(4, 17001, seed=4)[::2],
        "far from zero": random(2, 5000, seed=6) * 30 - 3e4,
        "broken": broken,
    }
    return {name: (x, small_topk.multi_block_softmax(x)) for name, x in shapes.items()}
