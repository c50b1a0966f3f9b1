"""Verify batches made at random, and what attention over them is, in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

POISON = float("nan")


@dataclass
class Batch:
    """A paged KV cache and a batch of queries on it, laid out as the engine does.

    ``cache`` is [blocks, block_size, kv_heads, 2 * head_size]: keys, then values. Slots no request owns, and those behind
    the end of one, are NaN. ``table`` has wild ids where no request may look.
    """

    cache: torch.Tensor
    table: torch.Tensor
    query: torch.Tensor
    kv_lens: torch.Tensor
    q_starts: torch.Tensor

    @property
    def head_size(self) -> int:
        return self.query.shape[2]

    @property
    def keys(self) -> torch.Tensor:
        return self.cache[..., : self.head_size]

    @property
    def values(self) -> torch.Tensor:
        return self.cache[..., self.head_size :]

    @property
    def longest_query(self) -> int:
        return int((self.q_starts[1:] - self.q_starts[:-1]).max())

    def poisoned(self) -> torch.Tensor:
        return torch.full_like(self.query, POISON)

    def expected(self, keys: torch.Tensor | None = None, values: torch.Tensor | None = None) -> torch.Tensor:
        """[tokens, heads, head_size] float64, every request by itself."""
        keys = self.keys if keys is None else keys
        values = self.values if values is None else values
        out = torch.full(self.query.shape, POISON, dtype=torch.float64, device=self.query.device)
        group = self.query.shape[1] // keys.shape[2]
        for request, length in enumerate(self.kv_lens.tolist()):
            begin, end = self.q_starts[request : request + 2].tolist()
            blocks = self.table[request, : math.ceil(length / keys.shape[1])].long()
            k, v = (
                x[blocks].flatten(0, 1)[:length].double().repeat_interleave(group, dim=1).transpose(0, 1)
                for x in (keys, values)
            )
            scores = self.query[begin:end].double().transpose(0, 1) @ k.transpose(1, 2) / math.sqrt(self.head_size)
            own = torch.arange(length - (end - begin), length, device=scores.device)
            hidden = torch.arange(length, device=scores.device)[None, :] > own[:, None]
            out[begin:end] = (scores.masked_fill(hidden, -math.inf).softmax(-1) @ v).transpose(0, 1)
        return out


def make_batch(
    kv_lens: list[int],
    q_lens: list[int],
    *,
    heads: int = 6,
    kv_heads: int = 2,
    head_size: int = 64,
    block_size: int = 16,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    seed: int = 0,
) -> Batch:
    generator = torch.Generator(device).manual_seed(seed)
    needed = [math.ceil(n / block_size) for n in kv_lens]
    blocks = sum(needed) + 3
    cache = torch.randn(blocks, block_size, kv_heads, 2 * head_size, generator=generator, device=device).to(dtype)
    order = torch.randperm(blocks, generator=generator, device=device).int()
    table = torch.full((len(kv_lens), max([*needed, 1]) + 2), 2**30, dtype=torch.int32, device=device)
    used = 0
    for request, (length, count) in enumerate(zip(kv_lens, needed, strict=True)):
        table[request, :count] = order[used : used + count]
        used += count
        if length % block_size:
            cache[table[request, count - 1].long(), length % block_size :] = POISON
    cache[order[used:].long()] = POISON
    query = torch.randn(sum(q_lens), heads, head_size, generator=generator, device=device).to(dtype)
    starts = torch.tensor([0, *q_lens], device=device).cumsum(0).int()
    return Batch(cache, table, query, torch.tensor(kv_lens, dtype=torch.int32, device=device), starts)


def quantised(batch: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Keys, values and their scales, laid out as the engine does: behind each row of int8 its float32 scale.

    The dequantised numbers replace those of the batch, so ``batch.expected`` is exact. Poisoned slots get scales of NaN.
    """
    rows = torch.stack([batch.keys, batch.values], dim=3).float()  # [blocks, block_size, heads, 2, D]
    size = batch.head_size
    held = torch.full((*rows.shape[:4], size + 4), 77, dtype=torch.int8, device=rows.device)
    scales = held.view(torch.float32)[..., size // 4]
    # Uneven on purpose: a scale taken from a neighbour must show.
    scales.copy_(rows.nan_to_num().abs().amax(-1) / 127 * (1 + torch.rand(scales.shape, device=rows.device)))
    scales.masked_fill_(rows.isnan().any(-1), float("nan"))
    held[..., :size] = (rows / scales[..., None]).nan_to_num().round().clamp(-128, 127).to(torch.int8)
    exact = held[..., :size].double() * scales.double()[..., None]
    batch.cache = torch.cat([exact[..., 0, :], exact[..., 1, :]], dim=-1)
    return held[..., 0, :size], held[..., 1, :size], scales[..., 0], scales[..., 1]


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """The worst of any row of the first dimension, so that many right rows hide no wrong one.

    NaN where either has a NaN, so that comparing it with a bound fails.
    """
    rows = (actual.double() - expected).flatten(1).norm(dim=1) / expected.flatten(1).norm(dim=1)
    return float(rows.max())
