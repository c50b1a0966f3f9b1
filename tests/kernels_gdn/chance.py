"""How likely counts are under a distribution: what the tests of sampling decide by."""

from __future__ import annotations

from typing import Any

import torch


def truncated(row: torch.Tensor, k: int, p: float) -> torch.Tensor:
    """The distribution that top-k/top-p sampling draws from, in 64-bit floats: [vocabulary] from logits [vocabulary]."""
    values, order = row.double().sort(descending=True, stable=True)
    values[k:] = -float("inf")
    probs = values.softmax(-1)
    probs[(probs.cumsum(-1) - probs) >= p] = 0
    return torch.zeros_like(probs).scatter(0, order, probs / probs.sum())


def pearson(counts: torch.Tensor, exact: torch.Tensor) -> float:
    """How likely counts so far off the exact distribution, or further, are by chance; nothing may fall outside it."""
    counts = counts.double()
    if counts[exact == 0].sum():
        return 0.0
    cells = exact > 0
    expected = exact[cells] * counts.sum()
    statistic = ((counts[cells] - expected) ** 2 / expected).sum()
    return float(torch.special.gammaincc((cells.sum() - 1).double() / 2, statistic / 2))


def of_support(found: dict[str, Any]) -> float:
    """The same for counts beside the row of logits, the k and the p they were drawn by."""
    return pearson(found["counts"], truncated(found["row"], found["k"], found["p"]))
