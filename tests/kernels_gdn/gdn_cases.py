"""The spec-decode kernels of GDN, KDA and Mamba on batches whose accepted-token counts are right, wrong and absurd.

Around everything a count is an offset into lies poison: the states' rows of block ids are a view into a table whose other
entries name a block full of NaN, and a convolution state is a view whose neighbours in the token direction are NaN.  A kernel
that looks outside its request's row therefore shows it in its output, on any tree, without a crash.

``SLOTS`` block ids, or convolution steps, belong to a request: one per token of the longest step.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch

SLOTS = 4
PAD = 8  # poisoned entries on either side of a row
DEVICE = "cpu"
POISON = 1  # the block that is all NaN; 0 is the null block
WIDTH = 4  # of the convolution

# One row each: what the step before accepted, and how many tokens this step has.
NEAR = [(1, 4), (2, 3), (SLOTS, 4), (0, 4), (-3, 2), (SLOTS + 1, 4), (SLOTS + 3, 1), (1, 0), (3, 1), (2, 4)]
FAR = [(2**31 - 1, 4), (-(2**31), 3), (2**20, 2), (1, 4), (-(2**20), 1)]


@dataclass
class Batch:
    """A batch of steps: ``counts`` and ``lengths`` per request, ``rows`` of block ids ``[requests, SLOTS]``."""

    counts: torch.Tensor
    lengths: list[int]
    starts: torch.Tensor
    rows: torch.Tensor
    blocks: int

    @property
    def tokens(self) -> int:
        return sum(self.lengths)


def batch(pairs: list[tuple[int, int]], null: int | None = None) -> Batch:
    """The batch of these (count, length) pairs; every entry of row ``null`` is the null block."""
    counts = torch.tensor([count for count, _ in pairs], dtype=torch.int64).to(DEVICE, torch.int32)
    lengths = [length for _, length in pairs]
    starts = torch.tensor([0, *lengths]).cumsum(0).to(DEVICE, torch.int32)
    table = torch.full((len(pairs), SLOTS + 2 * PAD), POISON, dtype=torch.int32, device=DEVICE)
    rows = table[:, PAD : PAD + SLOTS]
    rows.copy_(torch.arange(2, 2 + rows.numel()).view_as(rows))
    if null is not None:
        rows[null] = 0
    return Batch(counts, lengths, starts, rows, 2 + rows.numel())


def states(made: Batch, *shape: int, seed: int) -> torch.Tensor:
    pool = random(made.blocks, *shape, seed=seed)
    pool[POISON] = float("nan")
    return pool


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def delta_rule(kernel: str, pairs: list[tuple[int, int]], null: int | None = None, spec: bool = True) -> dict[str, Any]:
    """``fused_recurrent``, ``fused_recurrent_kda`` or ``fused_sigmoid_gating``; 2 key heads, 4 value heads, 32 × 16 states."""
    made = batch(pairs, null)
    heads, value_heads, k_dim, v_dim = (2, 4, 32, 16) if kernel != "fused_recurrent_kda" else (4, 4, 32, 32)
    tokens = made.tokens
    q, k = random(1, tokens, heads, k_dim, seed=1), random(1, tokens, heads, k_dim, seed=2)
    v = random(1, tokens, value_heads, v_dim, seed=3)
    pool = states(made, value_heads, v_dim, k_dim, seed=4)
    before = pool.clone()
    common = {
        "initial_state": pool,
        "inplace_final_state": True,
        "cu_seqlens": made.starts,
        "ssm_state_indices": made.rows if spec else made.rows[:, 0],
        "num_accepted_tokens": made.counts if spec else None,
        "use_qk_l2norm_in_kernel": True,
    }
    beta = random(1, tokens, value_heads, seed=5).sigmoid()
    inputs: dict[str, torch.Tensor] = {"q": q, "k": k, "v": v, "beta": beta}
    if kernel == "fused_sigmoid_gating":
        from vllm.third_party.flash_linear_attention.ops import fused_sigmoid_gating as module

        gate, logit = random(1, tokens, value_heads, seed=6), random(1, tokens, value_heads, seed=7)
        a_log, bias = random(value_heads, seed=8), random(value_heads, seed=9)
        inputs.update(beta=logit.double().sigmoid(), g=decay(a_log, gate, bias))
        out, _ = module.fused_sigmoid_gating_delta_rule_update(
            A_log=a_log, a=gate, b=logit, dt_bias=bias, q=q, k=k, v=v, scale=k_dim**-0.5, **common
        )
    elif kernel == "fused_recurrent":
        from vllm.third_party.flash_linear_attention.ops import fused_recurrent as module

        inputs["g"] = -random(1, tokens, value_heads, seed=6).abs()
        out, _ = module.fused_recurrent_gated_delta_rule(q=q, k=k, v=v, g=inputs["g"], beta=beta, **common)
    else:
        from vllm.third_party.flash_linear_attention.ops import kda as module

        inputs["g"] = -random(1, tokens, value_heads, k_dim, seed=6).abs()
        out, _ = module.fused_recurrent_kda_fwd(q=q, k=k, v=v, g=inputs["g"], beta=beta, scale=k_dim**-0.5, **common)
    return result(made, out[0], pool, before, inputs=inputs)


def decay(a_log: torch.Tensor, gate: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return -a_log.double().exp() * torch.nn.functional.softplus(gate.double() + bias.double())


def convolution(
    pairs: list[tuple[int, int]], layout: str, null: int | None = None, dim: int = 40, spec: bool = True
) -> dict[str, Any]:
    """``causal_conv1d_update``; ``layout`` says which direction of the state is contiguous: ``dim`` or ``token``."""
    from vllm.model_executor.layers.mamba.ops.causal_conv1d import causal_conv1d_update

    made = batch(pairs, null)
    length = WIDTH - 1 + SLOTS - 1
    shape = (made.blocks, length + 2 * PAD, dim) if layout == "dim" else (made.blocks, dim, length + 2 * PAD)
    pool = torch.full(shape, float("nan"), device=DEVICE)
    whole = pool.transpose(1, 2) if layout == "dim" else pool
    state = whole[:, :, PAD : PAD + length]
    state.copy_(random(made.blocks, dim, length, seed=1))
    before = pool.clone()
    x, weight, bias = random(made.tokens, dim, seed=2), random(dim, WIDTH, seed=3), random(dim, seed=4)
    out = torch.full_like(x, float("nan"))
    causal_conv1d_update(
        x,
        state,
        weight,
        bias,
        "silu",
        conv_state_indices=made.rows[:, 0],
        num_accepted_tokens=made.counts if spec else None,
        query_start_loc=made.starts,
        max_query_len=SLOTS,
        out=out,
    )
    found = result(made, out, pool, before, inputs={"x": x, "weight": weight, "bias": bias})
    found["history"] = (before.transpose(1, 2) if layout == "dim" else before)[:, :, PAD : PAD + length]
    return found


def selective_scan(pairs: list[tuple[int, int]], null: int | None = None, spec: bool = True) -> dict[str, Any]:
    """``selective_state_update``; 2 heads, 16 × 8 states."""
    from vllm.model_executor.layers.mamba.ops.mamba_ssm import selective_state_update

    made = batch(pairs, null)
    heads, dim, d_state = 2, 16, 8
    pool = states(made, heads, dim, d_state, seed=1)
    before = pool.clone()
    tokens = made.tokens
    x, dt = random(tokens, heads, dim, seed=2), random(tokens, heads, dim, seed=3)
    a = -random(heads, dim, d_state, seed=4).exp()
    b, c = random(tokens, 1, d_state, seed=5), random(tokens, 1, d_state, seed=6)
    skip, bias = random(heads, dim, seed=7), random(heads, dim, seed=8)
    out = torch.full_like(x, float("nan"))
    selective_state_update(
        pool,
        x,
        dt,
        a,
        b,
        c,
        skip,
        bias,
        dt_softplus=True,
        state_batch_indices=made.rows,
        out=out,
        num_accepted_tokens=made.counts if spec else None,
        cu_seqlens=made.starts,
    )
    inputs = {"x": x, "dt": dt, "a": a, "b": b, "c": c, "skip": skip, "bias": bias}
    return result(made, out, pool, before, inputs=inputs)


def result(made: Batch, out: torch.Tensor, after: torch.Tensor, before: torch.Tensor, **more: Any) -> dict[str, Any]:
    ends = made.starts.tolist()
    return {
        "outs": [out[start:end].clone() for start, end in itertools.pairwise(ends)],
        "rows": made.rows.clone(),
        "before": before,
        "after": after,
        **more,
    }


DELTA = ("fused_recurrent", "fused_recurrent_kda", "fused_sigmoid_gating")
KERNELS: dict[str, Any] = {
    **{name: lambda pairs, null, name=name: delta_rule(name, pairs, null) for name in DELTA},
    "causal_conv1d, dim first": lambda pairs, null: convolution(pairs, "dim", null),
    "causal_conv1d, token first": lambda pairs, null: convolution(pairs, "token", null),
    "mamba_ssm": selective_scan,
}


def collect(far: bool) -> dict[str, Any]:
    """Every kernel on ``NEAR``, with one row of null blocks, and, if asked for, on ``FAR``.

    A tree that does not bound its lookups reads gigabytes away on ``FAR``, which ends the process.
    """
    seen: dict[str, Any] = {}
    for name, kernel in KERNELS.items():
        seen[name] = {"near": kernel(NEAR, None), "null": kernel([(1, 3), (2, 2), (1, 4)], 1)}
        if far:
            seen[name]["far"] = kernel(FAR, None)
    for name in DELTA:
        seen[f"{name}, no drafts"] = {"near": delta_rule(name, [(1, 1)] * 3, spec=False)}
    seen["mamba_ssm, no drafts"] = {"near": selective_scan([(1, 1), (1, 3), (1, 2)], 1, spec=False)}
    return seen


def valid(kernel: str, count: int) -> bool:
    """Whether ``count`` is a place in the row; the state space kernel has always taken less than 1 for 1."""
    return count <= SLOTS if kernel == "mamba_ssm" else 1 <= count <= SLOTS


def outside(kernel: str, pairs: list[tuple[int, int]]) -> list[int]:
    return [row for row, (count, length) in enumerate(pairs) if length and not valid(kernel, count)]


def within(kernel: str, pairs: list[tuple[int, int]]) -> list[int]:
    return [row for row, (count, length) in enumerate(pairs) if length and valid(kernel, count)]
