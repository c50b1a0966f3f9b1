"""Drafts from the drafter and from the context, verified by the second runner's rejection sampler, many requests alike."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from lookup_cases import States, config, cut_up, mapping

REQUESTS, VOCAB, TOP_K, BLOCK, WIDTH = 500, 10, 4, 2, 3
TEMPERATURE = 0.8


def randn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def context(match: int) -> list[int]:
    """A history whose last ``match`` tokens occurred before, followed by 2, 1, 3; outside it, other tokens."""
    rng = random.Random(2)
    suffix = [4, 5, 6, 7, 8, 9][-match:] if match else []
    return [*suffix, 2, 1, 3, *(rng.randrange(100, 10**6) for _ in range(20)), *suffix]


def verified(match: int, bias: str | None = None, **changes: Any) -> dict[str, Any]:
    """What is emitted at each position by requests that end in a match this long, and how often drafts are looked up.

    The draft of each request is drawn with its own seed.  ``bias`` plants a draft distribution that is not the draft's:
    ``drafter's`` leaves what the drafter drew from beside what was looked up, ``certain`` has it that a token on which
    both agree was certain.
    """
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import LookupDrafter
    from vllm.v1.worker.gpu.spec_decode.dflash2.speculator import CandidateSampler
    from vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils import rejection_sample

    history, made = context(match), config(**changes)
    states = States(REQUESTS, 64)
    for index in range(REQUESTS):
        states.add(index, history)
    drafter = LookupDrafter(states, made, BLOCK, WIDTH)
    walk = CandidateSampler(REQUESTS, BLOCK, TOP_K, torch.device("cpu"), cache_steps=WIDTH)
    logits = torch.full((REQUESTS, WIDTH, VOCAB), -float("inf"))
    drafts = torch.zeros(REQUESTS, WIDTH, dtype=torch.int64)
    indices = torch.arange(REQUESTS, dtype=torch.int32)
    temperature, seeds = torch.full((REQUESTS,), TEMPERATURE), torch.arange(REQUESTS) * 7919 + 3
    ids = torch.tensor([[2, 5, 0, 7], [1, 2, 3, 9]]).expand(REQUESTS, BLOCK, TOP_K)
    scores = randn(BLOCK, TOP_K, TOP_K, seed=4).expand(REQUESTS, BLOCK, TOP_K, TOP_K)
    rows = mapping(indices.tolist(), BLOCK)
    position = len(history)
    sample_pos = (position + torch.arange(BLOCK)).repeat(REQUESTS)
    walk.sample(ids, scores, REQUESTS, sample_pos, rows, temperature, seeds, drafts, logits, False)
    before, drawn_from = drafts.clone(), logits.clone()
    drafter.copy_new_prompts(np.arange(REQUESTS))
    with cut_up(64, 1):
        drafter.propose(REQUESTS, rows, drafts, logits, walk.cached_candidate_ids)
    if bias == "drafter's":
        logits[:, :BLOCK] = drawn_from[:, :BLOCK]
    if bias == "certain":
        same = before[:, 0] == 2
        logits[same, 0] = -float("inf")
        logits[same, 0, 2] = 0.0

    target = randn(WIDTH + 1, VOCAB, seed=6) * 1.5 / TEMPERATURE
    every = torch.arange(REQUESTS).repeat_interleave(WIDTH + 1)
    out, count = rejection_sample(
        target.repeat(REQUESTS, 1),
        logits,
        torch.cat([torch.zeros(REQUESTS, 1, dtype=torch.int64), drafts], 1).flatten(),
        torch.arange(REQUESTS + 1, dtype=torch.int32) * (WIDTH + 1),
        (position - 1 + torch.arange(WIDTH + 1)).repeat(REQUESTS),
        indices,
        every.to(torch.int32),
        torch.arange(WIDTH + 1, dtype=torch.int32).repeat(REQUESTS),
        temperature,
        seeds,
        WIDTH,
    )
    emitted = [torch.bincount(out[count > at, at].long(), minlength=VOCAB) for at in range(WIDTH + 1)]
    changed = (drafts != before)[:, :BLOCK].any(1).sum()
    return {"emitted": torch.stack(emitted), "target": target, "changed": changed, "drafts": drafts, "before": before}


def collect(patched: bool) -> dict[str, Any]:
    """All of it; a pristine tree has none of it."""
    if not patched:
        return {}
    return {
        "strong": verified(6),
        "agreed": verified(4, agree=1),
        "no match": verified(0),
        "drafter's": verified(6, "drafter's"),
        "certain": verified(4, "certain", agree=1),
    }
