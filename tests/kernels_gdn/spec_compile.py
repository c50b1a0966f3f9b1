"""Compiles the verify attention's, samplers' and lookup drafting's kernels of one tree: ``python spec_compile.py NAME OUT``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import compiled


def main(capability: int, out: str) -> None:
    label = [""]
    compiled.prepare(capability, label)
    import lookup_cases
    import torch

    small(label)
    states = lookup_cases.States()
    states.add(0, [1, 2, 3] * 20)
    for name, logits in (("greedy", None), ("probabilistic", torch.zeros(lookup_cases.STATES, 6, 20))):
        label[0] = name
        from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import LookupDrafter

        drafter = LookupDrafter(states, lookup_cases.config(), 3, 6)
        cached = torch.zeros(lookup_cases.STATES, 6, 16, dtype=torch.int64)
        drafts = torch.zeros(1, 6, dtype=torch.int64)
        drafter.propose(1, lookup_cases.mapping([0], 3), drafts, logits, cached)
    verify(capability, label)
    torch.save(compiled.kernels, out)


def verify(capability: int, label: list[str]) -> None:
    """The verify attention at the model's geometry, over bfloat16 and int8, with the tile that the card has room for."""
    import torch
    from vllm.v1.attention.ops.spec_decode_attn import SpecDecodeAttention

    made = SpecDecodeAttention(24, 4, 256, 16, torch.device("cpu"), 82, pdl=capability >= 90)
    table, lens, starts = torch.zeros(2, 4, dtype=torch.int32), torch.zeros(2, dtype=torch.int32), torch.zeros(3).int()
    for dtype in (torch.bfloat16, torch.int8):
        cache, scales = torch.zeros(4, 16, 4, 256, dtype=dtype), torch.zeros(4, 16, 4)
        extra = () if dtype == torch.bfloat16 else (scales, scales)
        for length in (2, 5, 16):
            label[0] = f"verify {length} {dtype}"
            query = torch.zeros(2 * length, 24, 256, dtype=torch.bfloat16)
            made(query, cache, cache, table, lens, starts, length, 0.0625, query.clone(), *extra)
    compiled.kernels["tilings"] = {
        f"{rows} {dtype}": (fits.tile, fits.stages) for (rows, dtype), fits in made.fitting.items()
    }


def small(label: list[str]) -> None:
    """A verify batch's logits: 16 rows, with and without top-p."""
    import torch
    from vllm.v1.sample.ops import small_topk

    for dtype in (torch.float32, torch.bfloat16):
        logits, k = torch.randn(16, 20000, dtype=dtype), torch.full((16,), 20, dtype=torch.int32)
        label[0] = f"top-k {dtype}"
        small_topk.apply_small_top_k_top_p(logits, k, None, 64)
        label[0] = f"top-p {dtype}"
        small_topk.apply_small_top_k_top_p(logits, k, torch.full((16,), 0.9), 20)
        label[0] = f"softmax {dtype}"
        small_topk.multi_block_softmax(logits)


if __name__ == "__main__":
    import torch

    if sys.argv[1].isdigit():
        main(int(sys.argv[1]), sys.argv[2])
    elif sys.argv[1] == "pristine":
        torch.save({}, sys.argv[2])
    else:
        seen = {}
        for capability in (80, 86, 89, 90):  # one process each: a process has one card
            part = f"{sys.argv[2]}.{capability}"
            subprocess.run([sys.executable, __file__, str(capability), part], check=True)
            seen[capability] = torch.load(part, weights_only=True)
        torch.save(seen, sys.argv[2])
