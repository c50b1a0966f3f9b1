"""What the kernels compute, one token after another, in 64-bit floats."""

from __future__ import annotations

from typing import Any

import torch


def delta_rule(
    inputs: dict[str, torch.Tensor], tokens: slice, state: torch.Tensor
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The gated delta rule from ``state`` ``[heads, v, k]``: outputs ``[tokens, heads, v]``, the state after each token."""
    state = state.double()
    q, k, v, g, beta = (inputs[name][0, tokens].double() for name in ("q", "k", "v", "g", "beta"))
    groups = v.shape[1] // q.shape[1]
    q, k = (x.repeat_interleave(groups, 1) for x in (q, k))
    q, k = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    outs, states = [], []
    for t in range(v.shape[0]):
        gate = g[t].exp()
        state = state * (gate[:, None, :] if gate.ndim == 2 else gate[:, None, None])
        change = (v[t] - torch.einsum("hvk,hk->hv", state, k[t])) * beta[t][:, None]
        state = state + torch.einsum("hv,hk->hvk", change, k[t])
        outs.append(torch.einsum("hvk,hk->hv", state, q[t] * q.shape[-1] ** -0.5))
        states.append(state)
    return torch.stack(outs), states


def convolution(found: dict[str, Any], tokens: slice, block: int, count: int) -> torch.Tensor:
    """The causal convolution of these tokens after the history of ``block`` of which ``count`` tokens were accepted."""
    inputs = {name: tensor.double() for name, tensor in found["inputs"].items()}
    weight = inputs["weight"]
    width = weight.shape[1]
    history = found["history"][block].double()[:, count - 1 : count - 1 + width - 1]
    line = torch.cat([history, inputs["x"][tokens].T], 1)
    windows = line.unfold(1, width, 1)
    return torch.nn.functional.silu((windows * weight[:, None]).sum(-1).T + inputs["bias"])


def selective_scan(
    inputs: dict[str, torch.Tensor], tokens: slice, state: torch.Tensor
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The state space model from ``state`` ``[heads, dim, n]``: outputs ``[tokens, heads, dim]``, the states."""
    state = state.double()
    values = {name: tensor.double() for name, tensor in inputs.items()}
    outs, states = [], []
    for t in range(tokens.start, tokens.stop):
        step = torch.nn.functional.softplus(values["dt"][t] + values["bias"])[..., None]
        x, b, c = values["x"][t], values["b"][t, 0], values["c"][t, 0]
        state = state * (values["a"] * step).exp() + step * b * x[..., None]
        outs.append((state * c).sum(-1) + x * values["skip"])
        states.append(state)
    return torch.stack(outs), states
