"""Drafts from the drafter and from the context, verified by the second runner's rejection sampler, many requests alike."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from lookup_cases import States, config, cut_up, mapping

REQUESTS, VOCAB, BLOCK, WIDTH = 240, 10, 2, 3
TEMPERATURE = 0.8
CANDIDATES = torch.tensor([[2, 5, 0, 7], [1, 2, 3, 9]])
DRAFTED_FROM = torch.tensor([[0.5, 0.2, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]])
# The token on which drafter and context agree is as likely to both, so that to call it certain shows most.
TARGET = torch.full((WIDTH + 1, VOCAB), 0.05)
TARGET[0, 2], TARGET[0, 5], TARGET[1, 1], TARGET[2, 3], TARGET[3, 9] = 0.5, 0.1, 0.55, 0.55, 0.55
TARGET[:, 8] = 1 - TARGET.sum(1) + TARGET[:, 8]


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
    from vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils import rejection_sample

    history, made = context(match), config(**changes)
    generator = torch.Generator().manual_seed(5)
    drawn = [
        CANDIDATES[at][row.multinomial(REQUESTS, True, generator=generator)] for at, row in enumerate(DRAFTED_FROM)
    ]
    before = torch.stack([*drawn, torch.zeros(REQUESTS, dtype=torch.int64)], 1)
    # What is proposed depends on the draws and on nothing else here: once for each that occurred.
    distinct, which = before.unique(dim=0, return_inverse=True)
    rows = list(range(len(distinct)))
    states = States(len(distinct), 64)
    for index in rows:
        states.add(index, history)
    drafter = LookupDrafter(states, made, BLOCK, WIDTH)
    logits = torch.full((len(distinct), WIDTH, VOCAB), -float("inf"))
    logits[:, torch.arange(BLOCK)[:, None], CANDIDATES] = DRAFTED_FROM.log() * TEMPERATURE
    cached = torch.zeros(len(distinct), WIDTH, 4, dtype=torch.int64)
    cached[:, :BLOCK] = CANDIDATES
    drafts, drawn_from = distinct.clone(), logits.clone()
    drafter.copy_new_prompts(np.array(rows))
    with cut_up(64, 1):
        drafter.propose(len(distinct), mapping(rows, BLOCK), drafts, logits, cached)
    drafts, logits, drawn_from = drafts[which], logits[which], drawn_from[which]
    if bias == "drafter's":
        logits[:, :BLOCK] = drawn_from[:, :BLOCK]
    if bias == "certain":
        same = before[:, 0] == 2
        logits[same, 0] = -float("inf")
        logits[same, 0, 2] = 0.0

    every = torch.arange(REQUESTS)
    out, count = rejection_sample(
        TARGET.log().repeat(REQUESTS, 1),
        logits,
        torch.cat([torch.zeros(REQUESTS, 1, dtype=torch.int64), drafts], 1).flatten(),
        torch.arange(REQUESTS + 1, dtype=torch.int32) * (WIDTH + 1),
        (len(history) - 1 + torch.arange(WIDTH + 1)).repeat(REQUESTS),
        every.to(torch.int32),
        every.repeat_interleave(WIDTH + 1).to(torch.int32),
        torch.arange(WIDTH + 1, dtype=torch.int32).repeat(REQUESTS),
        torch.full((REQUESTS,), TEMPERATURE),
        every * 7919 + 3,
        WIDTH,
    )
    emitted = [torch.bincount(out[count > at, at].long(), minlength=VOCAB) for at in range(WIDTH + 1)]
    changed = (drafts != before)[:, :BLOCK].any(1).sum()
    return {"emitted": torch.stack(emitted), "changed": changed, "drafts": drafts, "before": before}


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
